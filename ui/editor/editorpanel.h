// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"
#include "core/trial/trial.h"
#include "ui/editor/diagnostics.h"
#include "ui/editor/draft.h"
#include "ui/highlight/jobslot.h"

#include <QWidget>

#include <memory>
#include <utility>
#include <vector>

class QAction;
class QLabel;
class QPushButton;
class QStackedWidget;
class QTabBar;
class QTextDocument;
class QTimer;
class QToolButton;

namespace klineage::ui {

class CodeEdit;
class ElidedLabel;
class FindBar;
class Selection;
class VerdictStrip;
class WorkspaceModel;

/// Writes candidates. A draft begins as the copy of a row and stays apart from it until the gate has judged it; nothing here changes
/// a file of the workspace. Drafts are saved as they are typed and are there again at the next start.
class EditorPanel : public QWidget
{
    Q_OBJECT

public:
    /// workspace and selection are not owned and outlive the panel.
    EditorPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent = nullptr);
    /// As above, with drafts elsewhere (tests).
    EditorPanel(WorkspaceModel *workspace, Selection *selection, const std::filesystem::path &draftDirectory,
                QWidget *parent = nullptr);
    ~EditorPanel() override; ///< saves what is not saved yet

    /// Begins a draft from a row; false, with message(), when its file cannot be read.
    bool openRow(const QString &lineageKey, const QString &row);
    bool openSelected();
    /// Asks the gate to judge the current draft; for longer, where its last trial left open whether the same text is faster.
    void requestGate();
    /// What the gate is doing with the draft that was sent last, what it found, or why it could not run.
    void showRunning(const QString &doing, const QString &text);
    void showVerdict(const gate::Trial &trial);
    void showFailure(const QString &text);
    void askForLine(); ///< and goes there
    /// The cursor to the next (+1) or previous (-1) finding or change of the draft, round past the ends; message() says what it is.
    void goToPlace(int by);
    /// The cursor to the next (+1) or previous (-1) change of the draft in the order of the stall samples that the row's trial has on the
    /// lines that it replaces, most first; message() says how many, or why there are none.
    void goToSampled(int by);
    /// Takes the current draft away, from the disk too.
    void discardDraft();

    [[nodiscard]] int draftCount() const { return static_cast<int>(m_open.size()); }
    [[nodiscard]] CodeEdit *edit() const { return m_edit; }

signals:
    void gateRequested(const klineage::gate::GateRequest &request, const QString &lineageKey,
                       const QString &parentRow);
    /// A sentence for the status bar.
    void message(const QString &text);

private:
    struct OpenDraft;

    void layOut();
    void restoreDrafts();
    void openDraftsOfWorkspace();
    void add(const Draft &draft);
    [[nodiscard]] OpenDraft *current() const;
    void showTrial(const OpenDraft &open);
    [[nodiscard]] bool isLeftOpen(const OpenDraft &open) const;
    [[nodiscard]] OpenDraft *gated() const; ///< the draft that was sent last; null when it is gone
    void showDraft(int index);
    void closeDraft(int index);
    void onEdited();
    void save(OpenDraft &open, bool now);
    void check();
    void showCheck(const PlanCheck &check);
    void updateCommands();
    void updateTabText(int index);
    [[nodiscard]] bool isElsewhere(const Draft &draft) const; ///< of another lineage than the window shows
    void markElsewhere();
    void showDraftsRow();

    // editorfind.cpp
    void makeCommands();
    void openFind();
    [[nodiscard]] bool search(); ///< marks what is there; true: something
    void goToMatch(int step);
    void showMatchCount();

    // editorplaces.cpp
    struct Place {
        int line = 0; ///< 0-based
        int column = 0;
        QString says;
    };
    [[nodiscard]] std::vector<Place> places() const; ///< in the order of the text, one a line
    void goTo(const Place &place);
    /// What the draft was begun from, and what it is; both as a document keeps a text.
    [[nodiscard]] std::pair<QString, QString> texts() const;
    [[nodiscard]] QString parentRow() const;
    [[nodiscard]] QString parentLineage() const;
    [[nodiscard]] const gate::Trial *parentTrial()
        const; ///< of the row that the draft was begun from, or null
    [[nodiscard]] bool parentIsMeasured(
        const gate::Trial &trial) const; ///< its text is what that trial is of

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    std::filesystem::path
        m_draftsOfAll;  ///< a folder in it for each workspace; empty: m_store is the only one
    QString m_draftsOf; ///< id of the workspace whose drafts are open
    std::shared_ptr<DraftStore> m_store;            ///< shared with saves in flight
    std::vector<std::unique_ptr<OpenDraft>> m_open; ///< in the order of the tabs
    QString m_gatedId;                              ///< of the draft that was sent to the gate last …
    QString m_gatedText;                            ///< … and what it was then
    JobSlot m_checking;
    QTimer *m_checkTimer;
    QTimer *m_saveTimer;
    QTabBar *m_tabs;
    QStackedWidget *m_pages;
    CodeEdit *m_edit;
    FindBar *m_find;
    QAction *m_gateAction = nullptr;
    int m_findFrom = 0;            ///< where a search that is being typed begins
    bool m_hasMoreMatches = false; ///< than are marked
    QWidget *m_elsewhere;          ///< above a draft of another lineage than the one that is shown
    ElidedLabel *m_elsewhereText;
    QToolButton *m_elsewhereShow;
    QLabel *m_empty;
    ElidedLabel *m_checkLine;
    VerdictStrip *m_verdict;
    QPushButton *m_gate;
    QPushButton *m_openButton;
    QPushButton *m_emptyButton;
};

} // namespace klineage::ui
