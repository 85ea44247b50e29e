// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/diffloader.h"
#include "ui/diff/render/comments.h"
#include "ui/diff/render/heat.h"

#include <QWidget>

class QAction;
class QLabel;
class QTabBar;
class QTimer;
class QToolButton;

namespace klineage::ui {

class CommentBar;
class DiffView;
class FindBar;
class Selection;
class SideHeader;
class WorkspaceModel;

/// The selected row against its parent, or against the pinned baseline: source, launch plan or compiler log. Follows the Selection;
/// moves it only when a walk through the hunks leaves a step.
class DiffPanel : public QWidget
{
    Q_OBJECT

public:
    /// Neither is owned; both outlive the panel.
    DiffPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);
    ~DiffPanel() override;

    /// Next or previous change; at the end of a step, the first (last) one of the next (previous) step.
    void goToNextHunk();
    void goToPreviousHunk();
    /// From the change where most stall samples moved to that where fewest did, and back; says how many.
    void goToNextMoved() { goByMoved(1); }
    void goToPreviousMoved() { goByMoved(-1); }
    void openFind();
    void askForLine(); ///< and goes there, on the side that is read
    void comment();    ///< asks what to say about the lines that are selected, or the current one
    void goToNextComment() { goToComment(1); }
    void goToPreviousComment() { goToComment(-1); }
    void setTab(DiffTab tab);
    [[nodiscard]] DiffTab tab() const;
    [[nodiscard]] DiffView *view() const { return m_view; }
    /// The stall samples of both sides, shown or not; null where no source is.
    [[nodiscard]] const HeatPtr &heat() const { return m_heat; }
    /// The comments on the step that is shown; null: there are none.
    [[nodiscard]] const CommentsPtr &comments() const { return m_comments; }
    [[nodiscard]] CommentBar *commentBar() const { return m_commentBar; }
    /// Whether the document on the screen is the one that was asked for.
    [[nodiscard]] bool isUpToDate() const { return m_wantedKey == m_shownKey; }
    /// The row was read ahead: it is shown as soon as it is selected.
    [[nodiscard]] bool isAtHand(const QString &row) const;

    /// All commands of the panel, for menus and the command palette. Their shortcuts act while the panel has the focus.
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }

    QSize minimumSizeHint() const override;

public slots:
    /// Shows the source, scrolls to a line of it and marks it; says so when there is no such line. side: 0 is the left, older text, 1 the
    /// right one. line: 1-based. lineChosen() is silent about it.
    void showSourceLine(int side, int line);
    /// Goes to the lines of a comment on the selected step, and says it.
    void showComment(const QString &id);

signals:
    /// Somebody clicked a line of the source or moved the current line to it; counted as in showSourceLine().
    void lineChosen(int side, int line);
    /// Something was said about the code, signed by nobody yet.
    void commentGiven(const QString &lineage, const klineage::lineage::CommentEvent &comment);
    /// A sentence for the status bar.
    void message(const QString &text);

protected:
    bool event(QEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;

private:
    enum class Arrival { Keep, FirstHunk, LastHunk, MostMoved };

    void makeCommands();
    QAction *command(const QString &name, const QString &text, const QKeySequence &key,
                     void (DiffPanel::*slot)());
    QAction *toggle(const QString &name, const QString &text, const QKeySequence &key, bool checked,
                    const std::function<void(bool)> &changed);
    void layOut();
    void makeRoom();
    void refresh();
    void showDocument(const DocumentPtr &document);
    void showHeadings();
    void showWantedLine();

    // diffpanelheat.cpp
    void refreshHeat(const DocumentPtr &shown);
    void showHeat();
    void sayHeat(Side side);
    void goByMoved(int step);

    // diffpanelcomments.cpp
    [[nodiscard]] std::optional<lineage::Step> shownStep() const;
    void refreshComments(const Document &shown);
    void askComment(const QString &lineage, const lineage::CommentPlace &place, const QString &question);
    void goToComment(int step);
    void sayComments(Side side);

    void showHunkCount();
    void prefetchNeighbours();
    void search();
    void goToMatch(int step);
    void nextMatch() { goToMatch(1); }
    void previousMatch() { goToMatch(-1); }

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    DiffLoader m_loader;
    JobSlot m_searching;
    diff::Options m_options;
    QString m_wantedKey;
    QString m_shownKey;
    QString m_shownLineage;
    DiffTab m_shownTab = DiffTab::Source;
    Arrival m_arrival = Arrival::Keep;
    std::optional<SideLine> m_lineWanted; ///< once its text is shown
    HeatPtr m_heat;
    CommentsPtr m_comments;
    QString m_commentWanted; ///< once its text is shown
    QString m_commentShown;  ///< that was gone to last
    int m_movedAt = -1;      ///< place of the last change that was gone to by the samples that moved
    QAction *m_heatAction = nullptr;
    QAction *m_commentAction = nullptr;
    QList<QAction *> m_commands;
    QTabBar *m_tabs;
    SideHeader *m_left;
    SideHeader *m_right;
    DiffView *m_view;
    FindBar *m_find;
    CommentBar *m_commentBar;
    QLabel *m_hunks;
    QLabel *m_busy;
    QTimer *m_busyTimer;
    QWidget *m_toggles;      ///< buttons of what can be switched on and off, while there is room for them
    QToolButton *m_viewMenu; ///< the same as a menu
    QList<QToolButton *> m_buttons; ///< previous and next change
};

} // namespace klineage::ui
