// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardreviewer.h"

#include "ui/models/reviewername.h"
#include "ui/models/workspacemodel.h"

#include <QPointer>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

/// "%1" stands for the cards.
QString verdictText(skills::ReviewVerdict verdict)
{
    switch (verdict) {
    case skills::ReviewVerdict::Approve:
        return CardReviewer::tr("Approved %1.");
    case skills::ReviewVerdict::Reject:
        return CardReviewer::tr("Rejected %1.");
    case skills::ReviewVerdict::NeedsEvidence:
        return CardReviewer::tr("Asked for more evidence for %1.");
    case skills::ReviewVerdict::Edit:
        return CardReviewer::tr("Saved %1.");
    case skills::ReviewVerdict::Comment:
        return CardReviewer::tr("Commented on %1.");
    case skills::ReviewVerdict::Revert:
        break; // is an undo or a redo
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
    connect(workspace, &WorkspaceModel::loaded, this, [this] {
        const std::filesystem::path &root = m_workspace->workspace().root;
        if (std::exchange(m_root, root) == root)
            return;
        m_done.clear();
        m_undone.clear();
        emit historyChanged();
    });
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

void CardReviewer::run(Edit edit, Act act, const QString &text, Task task)
{
    if (m_pending++ == 0)
        m_stop = std::stop_source();
    const auto skillsDirectory = m_workspace->workspace().root / "skills";
    m_pool.start([this, edit = std::move(edit), act, text, skillsDirectory, task = std::move(task),
                  stop = m_stop.get_token()] {
        const skills::CardStore store(skillsDirectory);
        Outcome outcome;
        outcome.wanted = edit.size();
        for (std::size_t i = 0; i < edit.size() && !stop.stop_requested(); ++i) {
            const Result<std::string> id = task(store, edit[i]);
            if (id) {
                Event written = edit[i];
                if (act == Act::Do)
                    written.id = *id;
                written.reversal = act == Act::Undo ? *id : std::string();
                outcome.written.push_back(std::move(written));
            } else {
                outcome.problems.emplace_back(edit[i].isOfCode() ? edit[i].lineage : edit[i].card,
                                              QString::fromStdString(id.error().message));
            }
            if (edit.size() > 1)
                emit progressed(static_cast<int>(i + 1), static_cast<int>(edit.size()));
        }
        QMetaObject::invokeMethod(this, [this, outcome, act, text] { take(outcome, act, text); });
    });
}

void CardReviewer::take(const Outcome &outcome, Act act, const QString &text)
{
    for (const auto &[card, message] : outcome.problems)
        emit failed(card, message);
    if (outcome.written.empty()) {
        --m_pending;
        return;
    }
    if (act == Act::Do)
        forgetUndone(outcome.written);
    (act == Act::Undo ? m_undone : m_done).push_back(outcome.written);
    emit historyChanged();
    const QString card = outcome.written.front().card;
    const std::size_t count = outcome.written.size();
    const QString cards = outcome.wanted == 1       ? card
                          : count == outcome.wanted ? tr("%1 cards").arg(count)
                                                    : tr("%1 of %2 cards").arg(count).arg(outcome.wanted);
    m_workspace->readChanges(
        [self = QPointer(this), card, said = QString(text).replace(QLatin1String("%1"), cards)] {
            if (!self)
                return;
            --self->m_pending;
            emit self->written(card, said);
        });
}

bool CardReviewer::isAt(const Edit &edit, const Place &place)
{
    return std::any_of(edit.begin(), edit.end(), [&place](const Event &event) {
        return event.isOfCode() ? event.lineage == place.lineage && event.row == place.row
                                : place.cards.contains(event.card);
    });
}

std::vector<CardReviewer::Edit>::const_iterator CardReviewer::newestAt(const std::vector<Edit> &edits,
                                                                       const Place &place)
{
    const auto found =
        std::find_if(edits.rbegin(), edits.rend(), [&](const Edit &edit) { return isAt(edit, place); });
    return found == edits.rend() ? edits.end() : std::prev(found.base());
}

bool CardReviewer::canUndo(const Place &place) const
{
    return newestAt(m_done, place) != m_done.end();
}

bool CardReviewer::canRedo(const Place &place) const
{
    return newestAt(m_undone, place) != m_undone.end();
}

/// What is said anew of a card or a row takes the place of what was taken back there.
void CardReviewer::forgetUndone(const Edit &edit)
{
    for (const Event &event : edit)
        std::erase_if(m_undone, [place = Place{{event.card}, event.lineage, event.row}](const Edit &undone) {
            return isAt(undone, place);
        });
}

void CardReviewer::review(const QStringList &cards, skills::ReviewVerdict verdict, const QString &reason)
{
    Edit wanted;
    for (const QString &card : cards) {
        if (const skills::CardRecord *record = m_workspace->card(card)) {
            Event event;
            event.card = card;
            event.cardRevision = record->card.revision;
            wanted.push_back(std::move(event));
        }
    }
    if (wanted.empty())
        return;
    skills::Review review;
    review.author = author().toStdString();
    review.verdict = verdict;
    review.reason = reason.trimmed().toStdString();
    run(std::move(wanted), Act::Do, verdictText(verdict),
        [review](const skills::CardStore &store, const Event &card) mutable {
            review.cardRevision = card.cardRevision;
            return store.review(card.card.toStdString(), review).map(&skills::Review::id);
        });
}

void CardReviewer::save(const skills::Card &card, const QString &reason)
{
    Event event;
    event.card = QString::fromStdString(card.name);
    run({std::move(event)}, Act::Do, verdictText(skills::ReviewVerdict::Edit),
        [card, author = author().toStdString(), reason = reason.toStdString()](
            const skills::CardStore &store, const Event &) -> Result<std::string> {
            const auto saved = store.save(card, author, reason);
            if (!saved)
                return tl::unexpected(saved.error());
            return saved->reviews.back().id;
        });
}

void CardReviewer::undo(const Place &place)
{
    takeBack(m_done, place, Act::Undo);
}

void CardReviewer::redo(const Place &place)
{
    takeBack(m_undone, place, Act::Redo);
}

/// An undo takes back what was said, a redo the undo.
void CardReviewer::takeBack(std::vector<Edit> &from, const Place &place, Act act)
{
    const auto newest = newestAt(from, place);
    if (newest == from.end())
        return;
    Edit edit = *newest;
    from.erase(newest);
    emit historyChanged();
    const bool isUndo = act == Act::Undo;
    const Event first = edit.front();
    if (first.isOfCode()) {
        emit undoingComment(first.lineage, first.row);
        lineage::CommentEvent revert;
        revert.kind = lineage::CommentKind::Revert;
        revert.about = isUndo ? first.id : first.reversal;
        append(first, std::move(revert), act,
               isUndo
                   ? tr("Took back what was said of the code of %1; the history keeps both.").arg(first.row)
                   : tr("Said again what was taken back of the code of %1.").arg(first.row));
        return;
    }
    emit undoing(first.card);
    run(std::move(edit), act,
        isUndo ? tr("Undid the last verdict or edit of %1.")
               : tr("Did the last verdict or edit of %1 again."),
        [author = author().toStdString(), isUndo](const skills::CardStore &store, const Event &event) {
            return store.revert(event.card.toStdString(), isUndo ? event.id : event.reversal, author)
                .map(&skills::Review::id);
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
    QString said;
    switch (comment.kind) {
    case lineage::CommentKind::Comment:
        said = tr("Commented on the code of %1.").arg(event.row);
        break;
    case lineage::CommentKind::Reply:
        said = tr("Replied to a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Resolve:
        said = tr("Resolved a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Reopen:
        said = tr("Reopened a comment on %1.").arg(event.row);
        break;
    case lineage::CommentKind::Revert:
        return; // is an undo or a redo
    }
    append(std::move(event), comment, Act::Do, said);
}

void CardReviewer::append(Event event, lineage::CommentEvent comment, Act act, const QString &text)
{
    comment.author = author().toStdString();
    run({std::move(event)}, act, text, [comment](const skills::CardStore &, const Event &about) {
        return lineage::appendComment(about.folder, comment).map(&lineage::CommentEvent::id);
    });
}

} // namespace klineage::ui
