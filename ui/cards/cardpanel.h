// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QLabel;
class QLineEdit;
class QPlainTextEdit;
class QPushButton;
class QStackedWidget;
class QTabBar;
class QTextBrowser;

namespace klineage::ui {

class CardEditor;
class CardReviewer;
class Selection;
class WorkspaceModel;

/// One SkillCard: Fields, Carrier, Evidence, Verification, History; the verdict bar is always visible.
/// Keys while the panel has focus: A approve, X reject, Ctrl+Z undo.
class CardPanel : public QWidget
{
    Q_OBJECT

public:
    CardPanel(WorkspaceModel *workspace, Selection *selection, CardReviewer *reviewer,
              QWidget *parent = nullptr);

public slots:
    void approve();
    void reject(); ///< asks for the reason in place
    void needEvidence();
    void edit();

protected:
    void resizeEvent(QResizeEvent *event) override;

private:
    void buildVerdictBar();
    void buildReasonRow();
    void nameVerdicts(bool whole);
    void askReason(bool rejecting);
    void refresh();
    void showTab();
    void followLink(const QString &link);
    void submitReason();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    CardReviewer *m_reviewer;
    QLabel *m_title;
    QLabel *m_life;
    QTabBar *m_tabs;
    QStackedWidget *m_stack;
    QTextBrowser *m_page;
    QPlainTextEdit *m_carrier;
    CardEditor *m_editor;
    QLabel *m_empty;
    QWidget *m_bar;
    QLabel *m_standing;
    QPushButton *m_approve;
    QPushButton *m_reject;
    QPushButton *m_needs;
    QPushButton *m_undo;
    QPushButton *m_confirm;
    QWidget *m_reasonRow;
    QLineEdit *m_reason;
    bool m_rejecting = true;
};

} // namespace klineage::ui
