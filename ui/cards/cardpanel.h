// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/comments.h"
#include "core/skills/card.h"
#include "ui/cards/cardreviewer.h"

#include <QKeySequence>
#include <QWidget>

class QAction;
class QLabel;
class QPushButton;
class QScrollArea;
class QStackedWidget;
class QTabBar;
class QTextBrowser;

namespace klineage::ui {

class ApplicationCounter;
class CardEditor;
class HighlightedEdit;
class RelationGraph;
class RevisionCompare;
class Selection;
class VerdictBar;
class WorkspaceModel;

/// One SkillCard: Fields, Carrier, Evidence, Verification, Relations, History; the verdict bar names it and is always visible. Where the selection
/// has no card, the panel says so and offers no verdict. Its commands have object names ("card.approve"), under which the window lists
/// and remaps their keys.
class CardPanel : public QWidget
{
    Q_OBJECT

public:
    CardPanel(WorkspaceModel *workspace, Selection *selection, CardReviewer *reviewer,
              QWidget *parent = nullptr);

    /// Whether what came of the card is counted, or nobody has asked for it.
    [[nodiscard]] bool isUpToDate() const;
    [[nodiscard]] VerdictBar *verdicts() const { return m_bar; }
    /// The card's fields are shown as text.
    [[nodiscard]] bool isEditing() const;

public slots:
    void approve();
    void reject(); ///< asks for the reason in place
    void needEvidence();
    void comment();
    void edit();
    void compareRevisions(); ///< of the card, side by side
    void
    showFields(); ///< the first page, where nothing is edited: the next card is looked at for another reason
    void askAuthor(); ///< the name that is written into the history

signals:
    /// A verdict on the card, the last one of several, was handed over to be written: the next card may be shown.
    void judged(const QString &card);
    /// A card shall be made from the selected step.
    void liftRequested();
    /// The selected card shall be tried on a kernel that had no part in it.
    void admitRequested();
    /// The lines of a comment on the selected step shall be looked at.
    void commentWanted(const QString &id);
    /// Another card shall be looked at.
    void cardRequested(const QString &card);
    /// A sentence for the status bar.
    void message(const QString &text);

protected:
    void changeEvent(QEvent *event) override;

private:
    void buildCommands();
    QAction *command(const QString &id, const QString &text, const QString &tip, const QKeySequence &key,
                     void (CardPanel::*slot)());
    [[nodiscard]] CardReviewer::Place place() const;
    void updateHistory();
    void undo();
    void redo();
    QWidget *makeTextPage();
    QWidget *makeNoCardPage();
    [[nodiscard]] QStringList judgedCards() const;
    void withAuthor(const std::function<void()> &act);
    void give(const QStringList &cards, skills::ReviewVerdict verdict, const QString &reason);
    void askReason(skills::ReviewVerdict verdict, const QString &question, const QString &confirm);
    void refresh();
    void showNoCard();
    void showTab();
    void setText(const QString &html);
    void showRelations(const skills::CardRecord &record);
    void showPage(int page);
    void followLink(const QString &link);
    [[nodiscard]] QString stepComments() const; ///< of the selected step; empty: none is selected
    void answerComment(const QString &link);
    void give(lineage::CommentKind kind, const QString &about, const QString &text);

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    CardReviewer *m_reviewer;
    ApplicationCounter *m_applications;
    QLabel *m_title;
    QLabel *m_life;
    QTabBar *m_tabs;
    QStackedWidget *m_stack;
    QTextBrowser *m_page;
    RelationGraph *m_around;
    QScrollArea *m_aroundArea = nullptr;
    QPushButton *m_admit;
    QWidget *m_admitRow = nullptr; ///< of a card that nobody has tried
    RevisionCompare *m_compare;
    HighlightedEdit *m_carrier;
    CardEditor *m_editor;
    QLabel *m_noCard;
    QPushButton *m_lift;
    VerdictBar *m_bar;
    QList<QAction *> m_verdictCommands; ///< those that need a card
    QAction *m_undo = nullptr;
    QAction *m_redo = nullptr;
    QStringList m_wentOnFrom; ///< cards whose verdicts, one after the other, led to what is selected now
    bool m_isGoingOn = false; ///< the selection follows a verdict, not a person
    QAction *m_setAuthor = nullptr;
};

} // namespace klineage::ui
