// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardreviewer.h"

#include "ui/models/reviewername.h"
#include "ui/models/workspacemodel.h"

#include <QPointer>

#include <algorithm>

namespace klineage::ui {

namespace {

QString verdictText(skills::ReviewVerdict verdict, const QString &cards)
{
    switch (verdict) {
    case skills::ReviewVerdict::Approve:
        return CardReviewer::tr("Approved %1.").arg(cards);
    case skills::ReviewVerdict::Reject:
        return CardReviewer::tr("Rejected %1.").arg(cards);
    case skills::ReviewVerdict::NeedsEvidence:
        return CardReviewer::tr("Asked for more evidence for %1.").arg(cards);
    case skills::ReviewVerdict::Edit:
        return CardReviewer::tr("Saved %1.").arg(cards);
    case skills::ReviewVerdict::Revert:
        return CardReviewer::tr("Undid the last verdict or edit of %1.").arg(cards);
    case skills::ReviewVerdict::Comment:
        return CardReviewer::tr("Commented on %1.").arg(cards);
    }
    return {};
}

/// The row that an event is about: of an answer that of its comment.
QString rowOf(const lineage::Lineage &lineage, const lineage::CommentEvent &event)
{
    constexpr int mostSteps = 8; // the file may be anybody's
    const lineage::CommentEvent *found = &event;
    for (int i = 0; found && found->kind != lineage::CommentKind::Comment && i < mostSteps; ++i) {
        const auto about =
            std::find_if(lineage.comments.begin(), lineage.comments.end(),
                         [found](const lineage::CommentEvent &other) { return other.id == found->about; });
        found = about == lineage.comments.end() ? nullptr : &*about;
    }
    return found ? QString::fromStdString(found->place.to) : QString();
}

} // namespace

CardReviewer::CardReviewer(WorkspaceModel *workspace, QObject *parent)
    : QObject(parent)
    , m_workspace(workspace)
{
    m_pool.setMaxThreadCount(1);
}

CardReviewer::~CardReviewer()
{
    m_pool.waitForDone();
}

bool CardReviewer::isAuthorSet()
{
    return isReviewerNameSet();
}

QString CardReviewer::author()
{
    return reviewerName();
}

void CardReviewer::setAuthor(const QString &name)
{
    setReviewerName(name);
}

void CardReviewer::run(std::vector<Event> cards, skills::ReviewVerdict verdict, Task task)
{
    if (m_pending++ == 0)
        m_stop = std::stop_source();
    const auto skillsDirectory = m_workspace->workspace().root / "skills";
    m_pool.start([this, cards = std::move(cards), verdict, skillsDirectory, task = std::move(task),
                  stop = m_stop.get_token()] {
        const skills::CardStore store(skillsDirectory);
        Outcome outcome;
        outcome.wanted = cards.size();
        for (std::size_t i = 0; i < cards.size() && !stop.stop_requested(); ++i) {
            const Result<std::string> id = task(store, cards[i]);
            if (id) {
                outcome.written.push_back(cards[i]);
                outcome.written.back().id = *id;
            } else {
                outcome.problems.emplace_back(cards[i].isOfCode() ? cards[i].lineage : cards[i].card,
                                              QString::fromStdString(id.error().message));
            }
            if (cards.size() > 1)
                emit progressed(static_cast<int>(i + 1), static_cast<int>(cards.size()));
        }
        QMetaObject::invokeMethod(this, [this, outcome, verdict] { take(outcome, verdict); });
    });
}

void CardReviewer::take(const Outcome &outcome, skills::ReviewVerdict verdict)
{
    for (const auto &[card, message] : outcome.problems)
        emit failed(card, message);
    if (outcome.written.empty()) {
        --m_pending;
        return;
    }
    if (verdict != skills::ReviewVerdict::Revert) {
        m_events.push_back(outcome.written);
        emit canUndoChanged(true);
    }
    const Event &first = outcome.written.front();
    const QString card = first.card;
    const std::size_t count = outcome.written.size();
    const QString cards = outcome.wanted == 1       ? card
                          : count == outcome.wanted ? tr("%1 cards").arg(count)
                                                    : tr("%1 of %2 cards").arg(count).arg(outcome.wanted);
    const QString text = first.isOfCode() ? first.said : verdictText(verdict, cards);
    m_workspace->readChanges([self = QPointer(this), card, text] {
        if (!self)
            return;
        --self->m_pending;
        emit self->written(card, text);
    });
}

void CardReviewer::review(const QStringList &cards, skills::ReviewVerdict verdict, const QString &reason)
{
    std::vector<Event> wanted;
    for (const QString &card : cards) {
        if (const skills::CardRecord *record = m_workspace->card(card))
            wanted.push_back({card, {}, record->card.revision, {}, {}, {}, {}});
    }
    if (wanted.empty())
        return;
    skills::Review review;
    review.author = author().toStdString();
    review.verdict = verdict;
    review.reason = reason.trimmed().toStdString();
    run(std::move(wanted), verdict, [review](const skills::CardStore &store, const Event &card) mutable {
        review.cardRevision = card.cardRevision;
        return store.review(card.card.toStdString(), review).map(&skills::Review::id);
    });
}

void CardReviewer::save(const skills::Card &card, const QString &reason)
{
    run({{QString::fromStdString(card.name), {}, 0, {}, {}, {}, {}}}, skills::ReviewVerdict::Edit,
        [card, author = author().toStdString(), reason = reason.toStdString()](
            const skills::CardStore &store, const Event &) -> Result<std::string> {
            const auto saved = store.save(card, author, reason);
            if (!saved)
                return tl::unexpected(saved.error());
            return saved->reviews.back().id;
        });
}

void CardReviewer::undo()
{
    if (m_events.empty())
        return;
    std::vector<Event> events = std::move(m_events.back());
    m_events.pop_back();
    emit canUndoChanged(canUndo());
    Event &first = events.front();
    if (first.isOfCode()) {
        emit undoingComment(first.lineage, first.row);
        lineage::CommentEvent revert;
        revert.kind = lineage::CommentKind::Revert;
        revert.about = first.id;
        first.said = tr("Took back what was said of %1; the history keeps both.").arg(first.row);
        append(std::move(first), std::move(revert), skills::ReviewVerdict::Revert);
        return;
    }
    emit undoing(first.card);
    run(std::move(events), skills::ReviewVerdict::Revert,
        [author = author().toStdString()](const skills::CardStore &store, const Event &event) {
            return store.revert(event.card.toStdString(), event.id, author).map(&skills::Review::id);
        });
}

void CardReviewer::comment(const QString &lineage, const lineage::CommentEvent &comment)
{
    const lineage::Lineage *found = m_workspace->lineage(lineage);
    if (!found)
        return;
    Event event;
    event.lineage = lineage;
    event.folder = found->directory;
    event.row = rowOf(*found, comment);
    switch (comment.kind) {
    case lineage::CommentKind::Comment:
        event.said = tr("Commented on the code of %1.").arg(event.row);
        break;
    case lineage::CommentKind::Reply:
        event.said = tr("Replied to a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Resolve:
        event.said = tr("Resolved a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Reopen:
        event.said = tr("Reopened a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Revert:
        event.said = tr("Took back what was said of %1; the history keeps both.").arg(event.row);
        break;
    }
    append(std::move(event), comment, skills::ReviewVerdict::Comment);
}

void CardReviewer::append(Event event, lineage::CommentEvent comment, skills::ReviewVerdict verdict)
{
    comment.author = author().toStdString();
    run({std::move(event)}, verdict, [comment](const skills::CardStore &, const Event &about) {
        return lineage::appendComment(about.folder, comment).map(&lineage::CommentEvent::id);
    });
}

} // namespace klineage::ui
