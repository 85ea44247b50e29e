// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/skills/store.h"

#include <QObject>
#include <QString>
#include <QThreadPool>

#include <functional>
#include <stop_token>
#include <vector>

namespace klineage::ui {

class WorkspaceModel;

/// Writes verdicts and edits of cards and comments on code, one after the other, on a thread of its own, and has what changed read again
/// when a write is on disk.
/// Lives on the GUI thread; signals arrive there. Undo and redo append reversing events, of a verdict on several cards one for each: history is
/// never erased. Each card, and the code of each row, has a history of its own.
class CardReviewer : public QObject
{
    Q_OBJECT

public:
    explicit CardReviewer(WorkspaceModel *workspace, QObject *parent = nullptr);
    ~CardReviewer() override; ///< waits for the writes under way

    /// Name written into review events: the setting, else the login's full name, else the login; empty when nobody knows one.
    [[nodiscard]] static QString author();
    [[nodiscard]] static bool isAuthorSet(); ///< by a person
    static void setAuthor(const QString &name);

    void review(const QString &card, skills::ReviewVerdict verdict, const QString &reason)
    {
        review(QStringList{card}, verdict, reason);
    }
    /// The same of each card, as one: undo() takes all of it back.
    void review(const QStringList &cards, skills::ReviewVerdict verdict, const QString &reason);
    void save(const skills::Card &card, const QString &reason);
    /// Keeps what was said of a lineage's code: a comment, or an answer to one. It is signed and dated here.
    void comment(const QString &lineage, const klineage::lineage::CommentEvent &comment);
    /// Of what an undo or a redo is: of any of the cards, or of the code of the row.
    struct Place {
        QStringList cards;
        QString lineage;
        QString row;
    };
    /// Reverts the newest event, or events that were one, of this session and place that still stands.
    void undo(const Place &place);
    /// Takes the newest undo of the place back, unless something was said there since.
    void redo(const Place &place);
    /// Leaves out the cards of what is being written that have not been reached yet.
    void stop() { m_stop.request_stop(); }
    [[nodiscard]] bool canUndo(const Place &place) const;
    [[nodiscard]] bool canRedo(const Place &place) const;
    [[nodiscard]] bool canUndoAnything() const { return !m_done.empty(); }
    [[nodiscard]] bool isBusy() const { return m_pending > 0; }

signals:
    /// An event is on disk, and the workspace has it. `text` is a sentence for the status bar: "Approved tma-load." Without a card: it was
    /// about code.
    void written(const QString &card, const QString &text);
    void failed(const QString &card, const QString &message);
    /// So many of the cards of one verdict are written.
    void progressed(int done, int total);
    /// Another canUndo() or canRedo().
    void historyChanged();
    /// An undo or a redo was asked for; what it changes is on this card.
    void undoing(const QString &card);
    /// The same; it is about the code of this row.
    void undoingComment(const QString &lineage, const QString &row);

private:
    struct Event {
        QString card;
        std::string id;         ///< of what was said
        std::string reversal{}; ///< of what took it back; empty: it stands
        int cardRevision = 0;   ///< 0: any
        QString lineage;        ///< of an event about code: its key …
        std::filesystem::path folder;
        QString row; ///< … and the row

        [[nodiscard]] bool isOfCode() const { return !lineage.isEmpty(); }
    };
    using Edit = std::vector<Event>; ///< events that are one
    enum class Act { Do, Undo, Redo };
    /// Writes one event of a card, on the writing thread.
    using Task = std::function<Result<std::string>(const skills::CardStore &, const Event &)>; ///< its id
    void run(Edit edit, Act act, const QString &text, Task task);
    void append(Event event, lineage::CommentEvent comment, Act act, const QString &text);
    void takeBack(std::vector<Edit> &from, const Place &place, Act act);
    [[nodiscard]] static bool isAt(const Edit &edit, const Place &place);
    [[nodiscard]] static std::vector<Edit>::const_iterator newestAt(const std::vector<Edit> &edits,
                                                                    const Place &place);
    void forgetUndone(const Edit &edit);
    struct Outcome {
        Edit written;
        std::vector<std::pair<QString, QString>> problems; ///< card, message
        std::size_t wanted = 0;
    };
    void take(const Outcome &outcome, Act act, const QString &text);

    WorkspaceModel *m_workspace;
    QThreadPool m_pool;           ///< one thread, so that writes keep their order
    std::vector<Edit> m_done;     ///< in this session, oldest first; each is taken back as one
    std::vector<Edit> m_undone;   ///< taken back, in that order
    std::filesystem::path m_root; ///< of the workspace that they are of
    std::stop_source m_stop;
    int m_pending = 0;
};

} // namespace klineage::ui
