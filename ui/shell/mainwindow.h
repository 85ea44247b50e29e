// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/begin/importrunner.h"
#include "ui/shell/commands/actionregistry.h"
#include "ui/shell/commands/gotoentries.h"
#include "ui/shell/session.h"

#include <QMainWindow>
#include <QMap>

#include <utility>

namespace klineage::ui {

class CardReviewer;
class Centre;
class DeviceMonitor;
class DockArranger;
class DockPanel;
class EditorPanel;
class GateController;
class GateDesk;
class KeyRing;
class MachinePanel;
class NewLineageDialog;
class ProblemsModel;
class QuickOpen;
class ReportMaker;
class RunController;
class RunStore;
class Selection;
class StatusLine;
class TopBar;
class Viewed;
class WorkspaceCopier;
class WorkspaceModel;
struct WindowLayout;

/// The workbench: panels from panels.cpp, arranged by layouts, around one workspace and one selection.
class MainWindow : public QMainWindow
{
    Q_OBJECT

public:
    /// When panels, commands and keys are made: most of what a window costs. What asks for them before gets them then.
    enum class Furnish { Now, AfterFirstPaint };

    explicit MainWindow(Furnish furnish = Furnish::Now, QWidget *parent = nullptr);
    ~MainWindow() override;

    /// Starts reading; the window shows what is there when it is done.
    void openWorkspace(const QString &root);
    /// Copies what is open to a new folder in `parent`, then opens the copy.
    void copyWorkspaceInto(const QString &parent);
    /// There is none: says what to do instead.
    void showNoWorkspace(const QString &why);
    /// Asks what is not in a kernel's source, for a new lineage; once the workspace is read. Empty: what was typed last, or a new one.
    void beginLineage(const QString &file = {});
    /// What to select once the workspace is read: "gemm/sm90", "gemm/sm90/K05", "run:ID" or "experiment:NAME", and a card's name.
    /// Both may be empty.
    void setWanted(const QString &target, const QString &card);
    /// A line of the problems panel about the window itself.
    void sayProblem(const QString &message);
    /// False when there is no such layout.
    bool applyLayout(const QString &id);
    /// Brings the panel Story to the front with that picture, one of StoryPanel::viewNames(). False when there is none of that name.
    bool showStory(const QString &view);

    void restoreSession(const SessionState &state);
    [[nodiscard]] SessionState sessionState();
    /// From now on the session is written when the window closes. store is not owned.
    void keepSessionIn(SessionStore *store);

    /// Nothing is being read, compared or asked for: what a screenshot waits for.
    [[nodiscard]] bool isSettled() const { return unsettled().isEmpty(); }
    /// What is: ids of panels, and "panels", "workspace" or "runs" for what belongs to none; for a test that waited in vain.
    [[nodiscard]] QStringList unsettled() const;
    [[nodiscard]] QString workspaceError() const { return m_workspaceError; }
    /// Why the wanted target or card could not be shown; empty when it was.
    [[nodiscard]] QString wantedError() const { return m_wantedError; }

    [[nodiscard]] WorkspaceModel *workspace() const { return m_workspace; }
    [[nodiscard]] Selection *selection() const { return m_selection; }
    [[nodiscard]] RunStore *runs() const { return m_runs; }
    [[nodiscard]] RunController *runner() const { return m_runner; }
    [[nodiscard]] CardReviewer *reviewer() const { return m_reviewer; }
    [[nodiscard]] Viewed *viewed() const { return m_viewed; }
    [[nodiscard]] ActionRegistry *actions() const { return m_actions; }
    [[nodiscard]] DeviceMonitor *devices() const { return m_devices; }
    [[nodiscard]] ProblemsModel *problems() const { return m_problems; }
    [[nodiscard]] Centre *centre() const { return m_centre; }
    [[nodiscard]] QWidget *panel(const QString &id) const { return m_panels.value(id); }

signals:
    void firstPainted();

public slots:
    void setVisible(bool visible) override;

protected:
    bool event(QEvent *event) override;
    void showEvent(QShowEvent *event) override;
    void closeEvent(QCloseEvent *event) override;
    void dragEnterEvent(QDragEnterEvent *event) override;
    void dropEvent(QDropEvent *event) override;

private:
    // windowframe.cpp
    void buildFrame();
    void connectLayouts();
    void afterFirstPaint();
    void focusSubject();
    void revealPanels();
    void showSession();

    void furnish();
    void buildPanels();
    void connectPanels();
    void connectWorkspace();
    void connectGate();
    void connectRuns();
    void updateStop();

    // windowkeys.cpp
    void buildPaneKeys();
    void buildRowKeys();
    void connectWalk();
    void walkChanges(int by);
    void walkSamples(int by);
    [[nodiscard]] EditorPanel *focusedDraft() const;
    void connectReview();
    void setTriaging(bool triaging);
    void followCard(const QString &name);
    [[nodiscard]] GoTo goTo();
    void stepCard(int by);
    void goToLargestStep();
    void goToUnreviewed(const QString &judged);
    void markViewed();
    void markCardsViewed();

    // windowmachine.cpp
    void connectMachine();
    [[nodiscard]] MachinePanel *machinePanel() const;

    // windowstory.cpp
    void connectStory();
    void pickToCompare(const QString &leftKey, const QString &leftRow);

    // windowfirst.cpp
    void buildFirstActions();
    void connectFirst();
    void showWelcome(const QString &why);
    void welcomeIfEmpty();
    void showGuide(bool shown);
    void updateGuide();
    void createWorkspaceIn(const QString &folder);
    void copyExample();
    void showImport(ImportRunner::Kind kind);
    void copyInto(const QString &from, const QString &parent);
    [[nodiscard]] static QString exampleWorkspace();

    // windowactions.cpp
    void buildActions();
    void buildMenus();
    void fillWorkspaceMenu();
    QAction *addCommand(const QString &id, const QString &text, const QKeySequence &key,
                        const std::function<void()> &act);
    QAction *command(const QString &id) const;
    void cyclePanes(int by);
    void zoomPane();
    void exportFocused();
    void focusLayout(const WindowLayout &layout);
    struct ReportSubject {
        QString title;
        QString name; ///< as report::findSubject() takes it; empty: nothing is in view
    };
    [[nodiscard]] ReportSubject reportSubject() const;
    void writeReport();
    void chooseWorkspace();
    void copyWorkspace();
    void showPanel(const QString &id);
    void raisePanel(const QString &id);
    [[nodiscard]] QWidget *focusedPanel() const;
    [[nodiscard]] QList<QWidget *> shownPanels() const;

    void onWorkspaceLoaded();
    void selectWanted();
    void selectRun(const QString &id);
    void selectExperiment(const QString &name);
    void followRow(const QString &row);

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    ProblemsModel *m_problems;
    GateController *m_gate;
    RunStore *m_runs;
    RunController *m_runner;
    GateDesk *m_desk;
    KeyRing *m_keys;
    CardReviewer *m_reviewer;
    Viewed *m_viewed;
    DeviceMonitor *m_devices;
    ActionRegistry *m_actions;
    TopBar *m_top;
    StatusLine *m_status;
    Centre *m_centre = nullptr;
    DockArranger *m_arranger = nullptr;
    QuickOpen *m_quickOpen = nullptr;
    ReportMaker *m_report;
    WorkspaceCopier *m_copier;
    NewLineageDialog *m_newLineage = nullptr;
    QMap<QString, QWidget *> m_panels;
    std::vector<DockPanel *> m_docks;
    SessionStore *m_store = nullptr;
    SessionState m_session;
    QString m_root;
    QString m_wantedTarget;
    QString m_wantedCard;
    QString m_wantedKernel; ///< file of a lineage to begin once the workspace is read
    bool m_wantsKernel = false;
    QString m_workspaceError;
    QString m_wantedError;
    std::pair<QString, QString> m_largeStep; ///< lineage and row that goToLargestStep() went to last
    double m_textScale = 1;                  ///< of the layouts but Demo, whose text is larger by itself
    bool m_furnished = false;                ///< panels, commands and keys are there
    bool m_painted = false;
    bool m_revealed = false; ///< all panels are there, those behind tabs too
    bool m_reading = false;
    bool m_triaging = false;      ///< a card was chosen rather than a step: verdicts go on to the next one
    bool m_revealsUndone = false; ///< what is written next was asked for by an undo or a redo
};

} // namespace klineage::ui
