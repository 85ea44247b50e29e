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

QString verdictText(skills::ReviewVerdict verdict, const QString &card)
{
    switch (verdict) {
    case skills::ReviewVerdict::Approve:
        return CardReviewer::tr("Approved %1.").arg(card);
    case skills::ReviewVerdict::Reject:
        return CardReviewer::tr("Rejected %1.").arg(card);
    case skills::ReviewVerdict::NeedsEvidence:
        return CardReviewer::tr("Asked for more evidence for %1.").arg(card);
    case skills::ReviewVerdict::Edit:
        return CardReviewer::tr("Saved %1.").arg(card);
    case skills::ReviewVerdict::Revert:
        return CardReviewer::tr("Undid the last verdict or edit of %1.").arg(card);
    case skills::ReviewVerdict::Comment:
        return CardReviewer::tr("Commented on %1.").arg(card);
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

QString CardReviewer::author()
{
    const QString set = QSettings(settingsFile(), QSettings::IniFormat).value(authorKey).toString();
    return set.isEmpty() ? loginName() : set;
}

void CardReviewer::setAuthor(const QString &name)
{
    QSettings(settingsFile(), QSettings::IniFormat).setValue(authorKey, name.trimmed());
}

void CardReviewer::run(const QString &card, const QString &text, bool undoable, Task task)
{
    ++m_pending;
    const auto skillsDirectory = m_workspace->workspace().root / "skills";
    m_pool.start([this, card, text, undoable, skillsDirectory, task = std::move(task)] {
        const auto result = task(skills::CardStore(skillsDirectory));
        QMetaObject::invokeMethod(this, [this, card, text, undoable, result] {
            if (!result) {
                --m_pending;
                emit failed(card, QString::fromStdString(result.error().message));
                return;
            }
            if (undoable) {
                m_events.push_back({card, result->id});
                emit canUndoChanged(true);
            }
            m_workspace->readChanges([self = QPointer(this), card, text] {
                if (!self)
                    return;
                --self->m_pending;
                emit self->written(card, text);
            });
        });
    });
}

void CardReviewer::review(const QString &card, skills::ReviewVerdict verdict, const QString &reason)
{
    const skills::CardRecord *record = m_workspace->card(card);
    if (!record)
        return;
    skills::Review review;
    review.author = author().toStdString();
    review.cardRevision = record->card.revision;
    review.verdict = verdict;
    review.reason = reason.trimmed().toStdString();
    run(card, verdictText(verdict, card), true,
        [name = card.toStdString(), review](const skills::CardStore &store) {
            return store.review(name, review);
        });
}

void CardReviewer::save(const skills::Card &card, const QString &reason)
{
    const QString name = QString::fromStdString(card.name);
    run(name, verdictText(skills::ReviewVerdict::Edit, name), true,
        [card, author = author().toStdString(),
         reason = reason.toStdString()](const skills::CardStore &store) -> Result<skills::Review> {
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
    const Event event = m_events.back();
    m_events.pop_back();
    emit canUndoChanged(canUndo());
    emit undoing(event.card);
    run(event.card, verdictText(skills::ReviewVerdict::Revert, event.card), false,
        [event, author = author().toStdString()](const skills::CardStore &store) {
            return store.revert(event.card.toStdString(), event.id, author);
        });
}

} // namespace klineage::ui
