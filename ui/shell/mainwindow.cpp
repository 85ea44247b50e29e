// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/mainwindow.h"

#include "core/workspace/installed.h"
#include "core/workspace/story.h"
#include "core/workspace/workspace.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/cards/cardreviewer.h"
#include "ui/diff/diffpanel.h"
#include "ui/editor/editorpanel.h"
#include "ui/experiments/compare/comparepanel.h"
#include "ui/experiments/compare/comparestore.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/graph/lineagepanel.h"
#include "ui/keys/keyring.h"
#include "ui/machine/machinepanel.h"
#include "ui/models/selection.h"
#include "ui/models/viewed.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/trajectorytabs.h"
#include "ui/profile/profilepanel.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/poolpanel.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runspanel.h"
#include "ui/runs/runstepview.h"
#include "ui/runs/runstore.h"
#include "ui/runs/verdicttext.h"
#include "ui/shell/breadcrumb.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/docks/dockpanel.h"
#include "ui/shell/panels.h"
#include "ui/shell/problemsmodel.h"
#include "ui/shell/reportmaker.h"
#include "ui/shell/statusline.h"
#include "ui/shell/topbar.h"
#include "ui/shell/workspacecopier.h"
#include "ui/story/storypanel.h"
#include "ui/style/icons.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/status.h"
#include "ui/style/theme.h"

#include <QAction>
#include <QApplication>
#include <QCloseEvent>
#include <QDir>
#include <QFileInfo>
#include <QMenu>
#include <QPointer>
#include <QScreen>
#include <QTimer>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int maxRecent = 8;
constexpr int titleBarHeight = 32; // that the desktop adds, about

/// A state, an attempt, or a branch ("trial:<id>").
bool hasRow(const lineage::Lineage &lineage, const QString &id)
{
    return lineage.findState(id.toStdString()) || id.startsWith(QLatin1String("trial:"))
           || std::any_of(lineage.attempts.begin(), lineage.attempts.end(),
                          [&](const auto &attempt) { return attempt.id == id.toStdString(); });
}

} // namespace

MainWindow::MainWindow(Furnish furnishing, QWidget *parent)
    : QMainWindow(parent)
    , m_workspace(new WorkspaceModel(this))
    , m_selection(new Selection(this))
    , m_problems(new ProblemsModel(this))
    , m_gate(new GateController(m_workspace, this))
    , m_runs(new RunStore(m_workspace, this))
    , m_runner(new RunController(m_runs, this))
    , m_desk(new GateDesk(this))
    , m_keys(new KeyRing(makeDesktopKeyStore(), this))
    , m_reviewer(new CardReviewer(m_workspace, this))
    , m_viewed(new Viewed(this))
    , m_devices(new DeviceMonitor(this))
    , m_actions(new ActionRegistry(this))
    , m_top(new TopBar)
    , m_status(new StatusLine(m_devices, m_gate, m_problems))
    , m_report(new ReportMaker(this))
    , m_copier(new WorkspaceCopier(this))
{
    setWindowTitle(QStringLiteral("KLineage"));
    setWindowIcon(applicationIcon());
    // As designed, where the screen is large enough for it.
    resize(QSize(1600, 1000).boundedTo(screen()->availableSize() - QSize(0, titleBarHeight)));
    setMenuWidget(m_top);
    setStatusBar(m_status);
    setContentsMargins(6, 0, 6, 0);
    buildFrame();
    connect(m_workspace, &WorkspaceModel::loaded, this,
            &MainWindow::furnish); // before who shows what it read
    connect(m_workspace, &WorkspaceModel::failed, this, &MainWindow::furnish);
    if (furnishing == Furnish::Now)
        furnish();
}

MainWindow::~MainWindow() = default;

void MainWindow::furnish()
{
    if (std::exchange(m_furnished, true))
        return;
    buildPanels();
    m_quickOpen = new QuickOpen(this);
    m_newLineage = new NewLineageDialog(
        m_workspace, m_gate, [this] { return m_devices->devices(); }, this);
    buildActions();
    buildPaneKeys();
    buildMenus();
    connectPanels();
    connectReview();
    connectMachine();
    connectStory();
    connectWorkspace();
    connectGate();
    connectRuns();
    connectFirst();
    panel(QStringLiteral("lineage"))->setFocus();
    showSession();
}

void MainWindow::buildPanels()
{
    const PanelContext context{m_workspace, m_selection, m_gate, m_reviewer, m_problems, m_runs, m_runner};
    auto dock = m_docks.begin();
    for (const PanelSpec &spec : panelTable()) {
        const QString id = QLatin1String(spec.id);
        QWidget *panel = spec.make(context);
        m_panels[id] = panel;
        if (spec.place == PanelPlace::Centre) {
            panel->setAccessibleName(spec.title);
            m_centre->setPage(id, panel);
        } else {
            (*dock++)->setPanel(panel);
        }
    }
}

void MainWindow::connectPanels()
{
    auto *lineage = qobject_cast<LineagePanel *>(panel(QStringLiteral("lineage")));
    auto *editor = qobject_cast<EditorPanel *>(panel(QStringLiteral("editor")));
    auto *diff = qobject_cast<DiffPanel *>(panel(QStringLiteral("diff")));
    connect(lineage, &LineagePanel::directionChanged, m_centre->breadcrumb(), &Breadcrumb::setDirection);
    connect(lineage, &LineagePanel::openInEditorRequested, this,
            [this, editor](const QString &key, const QString &row) {
                if (editor->openRow(key, row))
                    m_centre->showPage(QStringLiteral("editor"));
            });
    connect(editor, &EditorPanel::gateRequested, this,
            [this](const gate::GateRequest &request, const QString &key, const QString &row) {
                if (!m_gate->start(request, key, row))
                    m_status->say(tr("A trial is running; Shift+Esc stops it."));
            });
    connect(editor, &EditorPanel::message, m_status, &StatusLine::say);
    connect(diff, &DiffPanel::message, m_status, &StatusLine::say);
    auto *profile = qobject_cast<ProfilePanel *>(panel(QStringLiteral("profile")));
    addActions(profile->commands()); // their keys act while the panel is hidden, too
    connect(profile, &ProfilePanel::wanted, this, [this] { showPanel(QStringLiteral("profile")); });
    connect(profile, &ProfilePanel::sourceLineWanted, this, [this, diff](int side, int line) {
        m_centre->showPage(QStringLiteral("diff"));
        diff->showSourceLine(side, line);
    });
    connect(m_reviewer, &CardReviewer::written, this,
            [this](const QString &, const QString &text) { m_status->say(text); });
    connect(m_reviewer, &CardReviewer::failed, this, [this](const QString &card, const QString &text) {
        m_problems->add({ProblemsModel::Severity::Error, card, text, {}});
        m_status->say(text);
    });
    connect(m_report, &ReportMaker::ended, this, [this](const QString &fileName, const QString &problem) {
        updateStop();
        m_status->say(problem.isEmpty() ? tr("Wrote the report %1.").arg(fileName) : problem);
    });
    connect(m_status, &StatusLine::problemsRequested, this,
            [this] { showPanel(QStringLiteral("problems")); });
    connect(m_status, &StatusLine::consoleRequested, this, [this] { showPanel(QStringLiteral("console")); });
    connect(m_status, &StatusLine::runsRequested, this, [this] { showPanel(QStringLiteral("runs")); });
    connect(m_top, &TopBar::layoutChosen, this, [this](int layout) { m_arranger->apply(layout); });
    connect(m_top, &TopBar::goToRequested, this,
            [this] { command(QStringLiteral("window.goTo"))->trigger(); });
    connect(m_top, &TopBar::copyRequested, this, &MainWindow::copyWorkspace);
    connect(m_copier, &WorkspaceCopier::ended, this, [this](const QString &to, const QString &problem) {
        if (problem.isEmpty())
            openWorkspace(to);
        m_status->say(problem.isEmpty() ? tr("Copied the workspace to %1.").arg(QDir::toNativeSeparators(to))
                                        : problem);
    });
}

void MainWindow::connectWorkspace()
{
    connect(m_workspace, &WorkspaceModel::loaded, this, &MainWindow::onWorkspaceLoaded);
    connect(m_workspace, &WorkspaceModel::failed, this, [this](const QString &message) {
        m_reading = false;
        m_workspaceError = message;
        m_problems->add({ProblemsModel::Severity::Error, {}, message, {}});
        m_status->say(message);
        if (!m_workspace->isLoaded())
            showNoWorkspace(message);
    });
    const auto refreshProblems = [this] { m_problems->setWorkspace(m_workspace->workspace()); };
    connect(m_workspace, &WorkspaceModel::lineageChanged, this, refreshProblems);
    connect(m_workspace, &WorkspaceModel::cardChanged, this, refreshProblems);
    connect(m_selection, &Selection::rowChanged, this, &MainWindow::followRow);
    // Another lineage may have a row of the same name.
    connect(m_selection, &Selection::lineageChanged, this, [this] { followRow(m_selection->row()); });
}

void MainWindow::connectGate()
{
    auto *editor = qobject_cast<EditorPanel *>(panel(QStringLiteral("editor")));
    connect(m_gate, &GateController::started, this, [this, editor](const GateJob &job) {
        updateStop();
        if (!job.lineageKey.isEmpty()) // otherwise it is a new lineage's
            editor->showRunning(progressWord(), tr("Gating %1…").arg(job.candidateName));
    });
    connect(m_gate, &GateController::progressed, editor,
            [this, editor](quint64, const gate::GateProgress &progress) {
                if (!m_gate->currentJob().lineageKey.isEmpty())
                    editor->showRunning(progressWord(progress), QString::fromStdString(progress.text));
            });
    connect(m_gate, &GateController::finished, this,
            [this, editor](quint64, const gate::Trial &trial, const QString &row, const QString &note) {
                updateStop();
                const QString verdict = QString::fromStdString(trial.verdict.message);
                if (m_gate->currentJob().lineageKey.isEmpty()) {
                    m_status->say(verdict);
                    return;
                }
                editor->showVerdict(trial);
                m_status->say(note.isEmpty() ? verdict : tr("%1 %2").arg(verdict, note));
                const QString key = m_gate->currentJob().lineageKey;
                if (!row.isEmpty() && key == m_selection->lineageKey())
                    m_selection->setRow(row);
            });
    const auto ended = [this, editor](const QString &message) {
        updateStop();
        if (!m_gate->currentJob().lineageKey.isEmpty())
            editor->showFailure(message);
        m_status->say(message);
    };
    connect(m_gate, &GateController::failed, this, [this, ended](quint64, const QString &message) {
        m_problems->add({ProblemsModel::Severity::Error, tr("gate"), message, {}});
        ended(message);
    });
    connect(m_gate, &GateController::stopped, this,
            [ended](quint64) { ended(tr("The trial was stopped.")); });
}

void MainWindow::connectRuns()
{
    auto *runs = qobject_cast<RunsPanel *>(panel(QStringLiteral("runs")));
    auto *step = qobject_cast<RunStepView *>(panel(QStringLiteral("run")));
    m_status->setRunner(m_runner);
    m_runner->setKeys(m_keys);
    m_runner->setGates(m_desk);
    m_gate->setRunner(m_desk->runnerForPerson());
    m_status->setGates(m_desk);
    connect(m_workspace, &WorkspaceModel::loaded, m_desk,
            [this] { m_desk->open(QString::fromStdString(m_workspace->workspace().root.string())); });
    connect(m_status, &StatusLine::poolRequested, this, [this, panel = QPointer<PoolPanel>()]() mutable {
        if (!panel) {
            panel = new PoolPanel(m_desk, this);
            panel->setAttribute(Qt::WA_DeleteOnClose);
        }
        panel->show();
        panel->raise();
        panel->activateWindow();
    });
    QMenu *rowMenu = qobject_cast<LineagePanel *>(panel(QStringLiteral("lineage")))->contextMenu();
    rowMenu->addSeparator();
    QWidget *library = panel(QStringLiteral("library"))->focusProxy();
    library->setContextMenuPolicy(Qt::ActionsContextMenu);
    for (QAction *start : runs->startCommands()) {
        rowMenu->addAction(start);
        library->addAction(start);
    }
    // The keys act wherever the focus is, also while the panel is hidden.
    addActions(runs->commands());
    auto *trajectory = qobject_cast<TrajectoryTabs *>(panel(QStringLiteral("trajectory")));
    const auto look = [this, trajectory] {
        m_centre->showPage(QStringLiteral("run"));
        trajectory->showRuns(true);
    };
    connect(runs, &RunsPanel::message, m_status, &StatusLine::say);
    connect(runs, &RunsPanel::stepActivated, this, look);
    connect(step, &RunStepView::message, m_status, &StatusLine::say);
    connect(step, &RunStepView::questionArrived, this, look);
    addAction(step->answerCommand());
    auto *experiments = qobject_cast<ExperimentsPanel *>(panel(QStringLiteral("experiments")));
    connect(experiments, &ExperimentsPanel::message, m_status, &StatusLine::say);
    const auto openRun = [this, look](const QString &directory, const QString &id) {
        m_runs->openGuest(directory, id);
        showPanel(QStringLiteral("runs"));
        look();
    };
    connect(experiments, &ExperimentsPanel::runActivated, this, openRun);
    auto *compare = qobject_cast<ComparePanel *>(panel(QStringLiteral("compare")));
    connect(compare, &ComparePanel::message, m_status, &StatusLine::say);
    connect(compare, &ComparePanel::runActivated, this, openRun);
    connect(compare, &ComparePanel::openExperimentRequested, command(QStringLiteral("experiments.open")),
            &QAction::trigger);
    connect(experiments, &ExperimentsPanel::folderOpened, this, [this, compare] {
        if (compare->isVisible())
            compare->store()->refresh();
        else
            m_centre->showPage(QStringLiteral("experiments"));
    });
    connect(step, &RunStepView::cardRequested, this, [this](const QString &card) {
        goTo().card(card);
        showPanel(QStringLiteral("card"));
    });
    connect(m_runner, &RunController::started, this, [this, look] {
        updateStop();
        showPanel(QStringLiteral("runs"));
        look();
    });
    connect(m_runner, &RunController::ended, this,
            [this](const QString &id, const QString &code, const QString &reason) {
                updateStop();
                m_status->say(tr("%1: %2. %3").arg(id, code, reason));
            });
    connect(m_runner, &RunController::stored, m_workspace, [this] { m_workspace->readChanges(); });
    connect(m_runner, &RunController::failed, this, [this](const QString &id, const QString &message) {
        updateStop();
        m_problems->add({ProblemsModel::Severity::Error, id, message, {}});
        m_status->say(message);
    });
    connect(m_runs, &RunStore::problemFound, this, [this](const QString &text) {
        m_problems->add({ProblemsModel::Severity::Notice, tr("runs"), text, {}});
    });
}

void MainWindow::updateStop()
{
    command(QStringLiteral("window.stop"))
        ->setEnabled(m_gate->isRunning() || m_runner->isRunning() || m_report->isWorking()
                     || machinePanel()->isCompiling() || m_reviewer->isBusy());
}

void MainWindow::openWorkspace(const QString &root)
{
    m_root = QDir(root).absolutePath();
    m_reading = true;
    m_workspaceError.clear();
    m_centre->showWelcome(false);
    m_top->setWorkspaceName(QDir(m_root).dirName(), m_root);
    m_top->setReadOnly(false); // until it is read
    m_viewed->setWorkspace(m_root);
    m_workspace->open(m_root);
}

void MainWindow::setWanted(const QString &target, const QString &card)
{
    m_wantedTarget = target;
    m_wantedCard = card;
    if (m_workspace->isLoaded() && !m_reading)
        selectWanted();
}

void MainWindow::sayProblem(const QString &message)
{
    m_problems->add({ProblemsModel::Severity::Notice, {}, message, {}});
    m_status->say(message);
}

void MainWindow::onWorkspaceLoaded()
{
    const bool isAnew = std::exchange(m_reading, false);
    m_problems->setWorkspace(m_workspace->workspace());
    m_top->setReadOnly(isReadOnly(m_root.toStdString()));
    // Read again because a run stored something: what a person looks at stays.
    const lineage::Lineage *shown = m_workspace->lineage(m_selection->lineageKey());
    if (!isAnew && shown && hasRow(*shown, m_selection->row()))
        return;
    m_session.recentWorkspaces.removeAll(m_root);
    m_session.recentWorkspaces.prepend(m_root);
    m_session.recentWorkspaces = m_session.recentWorkspaces.mid(0, maxRecent);
    selectWanted();
    welcomeIfEmpty();
    if (std::exchange(m_wantsKernel, false))
        beginLineage(std::exchange(m_wantedKernel, {}));
}

/// What was asked for, else what is selected already, else what the last session had, else the best story of the workspace.
void MainWindow::selectWanted()
{
    m_wantedError.clear();
    const bool isUnasked = m_wantedTarget.isEmpty() && m_wantedCard.isEmpty()
                           && !m_workspace->lineage(m_selection->lineageKey());
    const Workspace &workspace = m_workspace->workspace();
    if (m_wantedTarget.startsWith(QLatin1String("run:")))
        selectRun(std::exchange(m_wantedTarget, {}).mid(4));
    if (m_wantedTarget.startsWith(QLatin1String("experiment:")))
        selectExperiment(std::exchange(m_wantedTarget, {}).mid(11));
    QString key =
        m_workspace->lineage(m_selection->lineageKey()) ? m_selection->lineageKey() : m_session.lineage;
    QString row = m_workspace->lineage(m_selection->lineageKey()) ? m_selection->row() : m_session.row;
    if (!m_wantedTarget.isEmpty()) {
        key = m_wantedTarget.section(QLatin1Char('/'), 0, 1);
        row = m_wantedTarget.section(QLatin1Char('/'), 2);
        if (!m_workspace->lineage(key))
            m_wantedError = tr("Cannot open %1: the workspace has no lineage %2.").arg(m_wantedTarget, key);
    }
    const lineage::Lineage *lineage = m_workspace->lineage(key);
    if (!lineage) {
        lineage = bestStory(workspace);
        row = lineage && m_wantedTarget.isEmpty() ? QString::fromStdString(firstState(workspace, *lineage))
                                                  : row;
    }
    if (lineage) {
        if (!row.isEmpty() && !hasRow(*lineage, row) && m_wantedError.isEmpty() && !m_wantedTarget.isEmpty())
            m_wantedError = tr("Cannot open %1: the lineage %2 has no row %3.").arg(m_wantedTarget, key, row);
        if ((row.isEmpty() || !hasRow(*lineage, row)) && !lineage->states.empty())
            row = QString::fromStdString(lineage->states.back().id);
        m_selection->setLineage(QString::fromStdString(lineage->key()), row);
        if (m_wantedTarget.isEmpty() && lineage->findState(m_session.baseline.toStdString())
            && m_session.lineage == m_selection->lineageKey())
            m_selection->setBaseline(m_session.baseline);
    } else {
        m_selection->setLineage({}, {});
    }
    followRow(m_selection->row());
    if (!m_wantedCard.isEmpty() && !m_workspace->card(m_wantedCard))
        m_wantedError = tr("Cannot show the card %1: the workspace has none of this name.").arg(m_wantedCard);
    for (const QString &card : {m_wantedCard, m_wantedTarget.isEmpty() ? m_session.card : QString()}) {
        if (m_workspace->card(card)) {
            m_selection->setCard(card);
            break;
        }
    }
    m_wantedTarget.clear();
    m_wantedCard.clear();
    if (isUnasked && lineage && !m_session.guideDismissed)
        showGuide(true);
}

void MainWindow::selectRun(const QString &id)
{
    if (!QFileInfo::exists(QStringLiteral("%1/runs/%2/run.toml").arg(m_root, id))) {
        m_wantedError = tr("Cannot open the run %1: the workspace has none of this name.").arg(id);
        return;
    }
    m_runs->setCurrent(id);
    showPanel(QStringLiteral("runs"));
    m_centre->showPage(QStringLiteral("run"));
    qobject_cast<TrajectoryTabs *>(panel(QStringLiteral("trajectory")))->showRuns(true);
}

void MainWindow::selectExperiment(const QString &name)
{
    if (!QFileInfo::exists(QStringLiteral("%1/experiments/%2/experiment.toml").arg(m_root, name))) {
        m_wantedError = tr("Cannot open the experiment %1: the workspace has none of this name.").arg(name);
        return;
    }
    qobject_cast<ExperimentsPanel *>(panel(QStringLiteral("experiments")))->setExperiment(name);
    m_centre->showPage(QStringLiteral("experiments"));
}

/// The card of a transition is looked at together with its step; a row without one shows none.
void MainWindow::followRow(const QString &row)
{
    if (m_selection->isLookingUp())
        return;
    setTriaging(false);
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const lineage::Transition *transition = lineage ? lineage->transitionTo(row.toStdString()) : nullptr;
    const QString card = transition ? QString::fromStdString(transition->card) : QString();
    m_selection->setCard(m_workspace->card(card) ? card : QString());
}

QStringList MainWindow::unsettled() const
{
    QStringList names;
    const auto add = [&names](const char *name, bool isReady) {
        if (!isReady)
            names << QLatin1String(name);
    };
    add("panels", m_furnished && (m_revealed || !m_painted));
    if (!m_furnished)
        return names;
    add("workspace", !m_reading);
    add("runs", !m_runs->isReading());
    add("story", qobject_cast<StoryPanel *>(panel(QStringLiteral("story")))->isUpToDate());
    add("run", qobject_cast<RunStepView *>(panel(QStringLiteral("run")))->isUpToDate());
    add("experiments", qobject_cast<ExperimentsPanel *>(panel(QStringLiteral("experiments")))->isUpToDate());
    add("compare", qobject_cast<ComparePanel *>(panel(QStringLiteral("compare")))->isUpToDate());
    add("profile", qobject_cast<ProfilePanel *>(panel(QStringLiteral("profile")))->isUpToDate());
    if (m_workspace->isLoaded()) {
        add("diff", qobject_cast<DiffPanel *>(panel(QStringLiteral("diff")))->isUpToDate());
        add("machine", machinePanel()->isUpToDate());
    }
    return names;
}

} // namespace klineage::ui
