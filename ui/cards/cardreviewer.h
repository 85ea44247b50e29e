// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/store.h"

#include <QObject>
#include <QString>
#include <QThreadPool>

#include <functional>
#include <vector>

namespace klineage::ui {

class WorkspaceModel;

/// Writes verdicts and edits of cards, one after the other, on a thread of its own, and has the card read again when a write is on disk.
/// Lives on the GUI thread; signals arrive there. Undo appends a reversing event: history is never erased.
class CardReviewer : public QObject
{
    Q_OBJECT

public:
    explicit CardReviewer(WorkspaceModel *workspace, QObject *parent = nullptr);
    ~CardReviewer() override; ///< waits for the writes under way

    /// Name written into review events: the setting, else the login's full name, else the login; empty when nobody knows one.
    [[nodiscard]] static QString author();
    static void setAuthor(const QString &name);

    void review(const QString &card, skills::ReviewVerdict verdict, const QString &reason);
    void save(const skills::Card &card, const QString &reason);
    /// Reverts the newest event of this session that still stands.
    void undo();
    [[nodiscard]] bool canUndo() const { return !m_events.empty(); }
    [[nodiscard]] bool isBusy() const { return m_pending > 0; }

signals:
    /// An event is on disk, and the workspace has it. `text` is a sentence for the status bar: "Approved tma-load."
    void written(const QString &card, const QString &text);
    void failed(const QString &card, const QString &message);
    void canUndoChanged(bool canUndo);
    /// An undo was asked for; what it takes back is on this card.
    void undoing(const QString &card);

private:
    struct Event {
        QString card;
        std::string id;
    };
    using Task = std::function<Result<skills::Review>(const skills::CardStore &)>;
    void run(const QString &card, const QString &text, bool undoable, Task task);

    WorkspaceModel *m_workspace;
    QThreadPool m_pool; ///< one thread, so that writes keep their order
    std::vector<Event> m_events;
    int m_pending = 0;
};

} // namespace klineage::ui
