// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/cardreviewer.h"

#include "ui/models/workspacemodel.h"

#include <QPointer>
#include <QSettings>
#include <QStandardPaths>

#include <pwd.h>
#include <unistd.h>

namespace klineage::ui {

namespace {

const QString authorKey = QStringLiteral("review/author");

QString settingsFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/reviewer.ini");
}

/// What the system calls the person: the full name, else the login; empty when it knows neither.
QString loginName()
{
    if (const passwd *entry = getpwuid(geteuid())) {
        const QString full =
            QString::fromLocal8Bit(entry->pw_gecos).section(QLatin1Char(','), 0, 0).trimmed();
        return full.isEmpty() ? QString::fromLocal8Bit(entry->pw_name) : full;
    }
    return qEnvironmentVariable("USER", qEnvironmentVariable("LOGNAME"));
}

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
    return !QSettings(settingsFile(), QSettings::IniFormat).value(authorKey).toString().isEmpty();
}

QString CardReviewer::author()
{
    const QString set = QSettings(settingsFile(), QSettings::IniFormat).value(authorKey).toString();
    return set.isEmpty() ? loginName() : set;
}

void CardReviewer::setAuthor(const QString &name)
{
    QSettings(settingsFile(), QSettings::IniFormat).setValue(authorKey, name.trimmed());
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
            const auto result = task(store, cards[i]);
            if (result)
                outcome.written.push_back({cards[i].card, result->id});
            else
                outcome.problems.emplace_back(cards[i].card, QString::fromStdString(result.error().message));
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
    const QString card = outcome.written.front().card;
    const std::size_t count = outcome.written.size();
    const QString cards = outcome.wanted == 1       ? card
                          : count == outcome.wanted ? tr("%1 cards").arg(count)
                                                    : tr("%1 of %2 cards").arg(count).arg(outcome.wanted);
    m_workspace->readChanges([self = QPointer(this), card, text = verdictText(verdict, cards)] {
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
            wanted.push_back({card, {}, record->card.revision});
    }
    if (wanted.empty())
        return;
    skills::Review review;
    review.author = author().toStdString();
    review.verdict = verdict;
    review.reason = reason.trimmed().toStdString();
    run(std::move(wanted), verdict, [review](const skills::CardStore &store, const Event &card) mutable {
        review.cardRevision = card.cardRevision;
        return store.review(card.card.toStdString(), review);
    });
}

void CardReviewer::save(const skills::Card &card, const QString &reason)
{
    run({{QString::fromStdString(card.name), {}, 0}}, skills::ReviewVerdict::Edit,
        [card, author = author().toStdString(), reason = reason.toStdString()](
            const skills::CardStore &store, const Event &) -> Result<skills::Review> {
            const auto saved = store.save(card, author, reason);
            if (!saved)
                return tl::unexpected(saved.error());
            return saved->reviews.back();
        });
}

void CardReviewer::undo()
{
    if (m_events.empty())
        return;
    std::vector<Event> events = std::move(m_events.back());
    m_events.pop_back();
    emit canUndoChanged(canUndo());
    emit undoing(events.front().card);
    run(std::move(events), skills::ReviewVerdict::Revert,
        [author = author().toStdString()](const skills::CardStore &store, const Event &event) {
            return store.revert(event.card.toStdString(), event.id, author);
        });
}

} // namespace klineage::ui
