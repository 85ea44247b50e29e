// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/runspanel.h"

#include "ui/keys/keysdialog.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runlistmodel.h"
#include "ui/runs/runprogress.h"
#include "ui/runs/runstepmodel.h"
#include "ui/style/icons.h"
#include "ui/style/plainwidgets.h"

#include <QAction>
#include <QHBoxLayout>
#include <QHeaderView>
#include <QLabel>
#include <QMenu>
#include <QProgressBar>
#include <QPushButton>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QVBoxLayout>

#include <utility>

namespace klineage::ui {

RunsPanel::RunsPanel(WorkspaceModel *workspace, Selection *selection, RunStore *store,
                     RunController *controller, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_store(store)
    , m_controller(controller)
    , m_runModel(new RunListModel(store, this))
    , m_stepModel(new RunStepModel(store, this))
    , m_stack(new QStackedWidget)
    , m_runs(makePlainTable(m_runModel, tr("Runs of the workspace")))
    , m_steps(makePlainTable(m_stepModel, tr("Steps of the run")))
    , m_noSteps(makeMessageLabel(tr("No step yet.")))
    , m_stepStack(new QStackedWidget)
    , m_budget(new QProgressBar)
    , m_progressText(new QLabel)
{
    makeCommands();
    m_runs->horizontalHeader()->setStretchLastSection(true);
    m_steps->horizontalHeader()->setStretchLastSection(true);
    m_stepStack->addWidget(m_steps);
    m_stepStack->addWidget(m_noSteps);
    auto *splitter = new QSplitter(Qt::Horizontal);
    splitter->addWidget(m_runs);
    splitter->addWidget(m_stepStack);
    splitter->setSizes({480, 520});
    splitter->setChildrenCollapsible(false);
    m_stack->addWidget(splitter);
    m_stack->addWidget(makeMessageLabel(
        tr("No run yet. Start one here (%1) or with klineage-cli run start: an author, a model or "
           "yourself, rewrites a kernel step by step under a budget, and the gate judges every candidate.")
            .arg(m_start->shortcut().toString(QKeySequence::NativeText))));
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addWidget(makeBar());
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_runs);
    connectViews();
    showRuns();
    showCurrent();
    showProgress();
}

bool RunsPanel::isEmpty() const
{
    return m_stack->currentIndex() == 1;
}

QAction *RunsPanel::command(const QString &name, const QString &text, const QString &tip,
                            const QKeySequence &key, const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(QStringLiteral("runs.") + name);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WindowShortcut);
    action->setToolTip(
        key.isEmpty() ? tip : QStringLiteral("%1 (%2)").arg(tip, key.toString(QKeySequence::NativeText)));
    connect(action, &QAction::triggered, this, act);
    m_commands << action;
    return action;
}

void RunsPanel::makeCommands()
{
    const auto key = [](Qt::Key k) { return QKeySequence(Qt::CTRL | Qt::SHIFT | k); };
    m_start = command(QStringLiteral("start"), tr("Start a run…"),
                      tr("Choose root, policy, author and budget, and start"), key(Qt::Key_R),
                      [this] { startRun(); });
    const auto starts = [this](run::Kind kind, const QString &name, const QString &text, const QString &tip) {
        m_starts << command(name, text, tip, {}, [this, kind] { startRun(kind); });
    };
    m_starts << m_start;
    starts(run::Kind::Deoptimize, QStringLiteral("deoptimize"), tr("Deoptimize lineage…"),
           tr("Take the selected kernel apart, step by step, into a lineage"));
    starts(run::Kind::Lift, QStringLiteral("lift"), tr("Lift cards…"),
           tr("Lift transitions of lineages into cards"));
    starts(run::Kind::Admit, QStringLiteral("admit"), tr("Admit card…"),
           tr("Try the selected card on a kernel that had no part in it"));
    m_resume = command(QStringLiteral("resume"), tr("Resume"),
                       tr("Go on with the selected run; nothing is paid twice"), key(Qt::Key_G),
                       [this] { resumeRun(); });
    m_pause = command(QStringLiteral("pause"), tr("Pause"), tr("Stop the run after the step it is at"),
                      key(Qt::Key_U), [this] { m_controller->pause(); });
    m_stop = command(QStringLiteral("stop"), tr("Stop"),
                     tr("Stop the run at once; what was recorded stays (Shift+Esc)"), {},
                     [this] { m_controller->stop(); });
    m_byHand = command(QStringLiteral("byHand"), tr("By hand"),
                       tr("Answer the next questions of the run yourself"), key(Qt::Key_H), [this] {
                           m_controller->setByHand(m_byHand->isChecked());
                           showProgress();
                       });
    m_byHand->setCheckable(true);
    m_keys = command(QStringLiteral("keys"), tr("API keys…"),
                     tr("Store and remove the keys of providers in the keychain"), {}, [this] {
                         if (m_controller->keys())
                             KeysDialog(m_controller->keys(), this).exec();
                     });
    m_start->setIcon(icon(QStringLiteral("run")));
    m_start->setIconText(tr("Start…")); // on its button
    m_stop->setIcon(icon(QStringLiteral("stop")));
}

QWidget *RunsPanel::makeBar()
{
    auto *bar = new QWidget;
    auto *row = new QHBoxLayout(bar);
    row->setContentsMargins(4, 3, 8, 3);
    row->setSpacing(2);
    auto *kinds = new QMenu(bar);
    kinds->addActions(m_starts);
    kinds->addSeparator();
    kinds->addAction(m_keys);
    for (QAction *action : {m_start, m_resume, m_pause, m_stop, m_byHand}) {
        auto *button = new QToolButton;
        button->setDefaultAction(action);
        if (action == m_start) {
            button->setMenu(kinds);
            button->setPopupMode(QToolButton::MenuButtonPopup);
        }
        button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
        button->setIconSize(QSize(13, 13));
        button->setFocusPolicy(Qt::TabFocus);
        row->addWidget(button);
    }
    row->addSpacing(10);
    m_progressText->setForegroundRole(QPalette::PlaceholderText);
    m_progressText->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_progressText->setAccessibleName(tr("What the run is doing"));
    m_budget->setFixedSize(90, 10);
    m_budget->setTextVisible(false);
    m_budget->setRange(0, 1000);
    m_budget->setAccessibleName(tr("Spent of the cap"));
    row->addWidget(m_progressText, 1);
    row->addWidget(m_budget);
    return bar;
}

void RunsPanel::connectViews()
{
    connect(m_store, &RunStore::changed, this, [this] {
        showRuns();
        showCurrent();
        showProgress();
    });
    connect(m_store, &RunStore::currentChanged, this, [this] {
        showCurrent();
        showProgress();
    });
    connect(m_store, &RunStore::stepChanged, this, &RunsPanel::showCurrent);
    connect(m_controller, &RunController::progressed, this, &RunsPanel::showProgress);
    connect(m_runs->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &index) {
                if (!m_moving && index.isValid())
                    m_store->setCurrent(index.data(RunListModel::IdRole).toString());
            });
    connect(m_steps->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &index) {
                if (!m_moving && index.isValid())
                    m_store->setStep(index.data(RunStepModel::NumberRole).toInt());
            });
    connect(m_steps, &QTableView::activated, this, [this] {
        showCardOfStep();
        emit stepActivated();
    });
    connect(m_runs, &QTableView::activated, this, &RunsPanel::stepActivated);
}

void RunsPanel::showRuns()
{
    m_stack->setCurrentIndex(m_store->runs().empty() ? 1 : 0);
    // New rows only: a width that a person chose stays while a run grows.
    if (std::exchange(m_shownRuns, m_runModel->rowCount()) != m_runModel->rowCount())
        m_runs->resizeColumnsToContents();
}

/// The views follow what the store looks at.
void RunsPanel::showCurrent()
{
    m_moving = true;
    const int row = m_runModel->rowOf(m_store->currentId());
    if (row >= 0 && m_runs->currentIndex().row() != row)
        m_runs->selectRow(row);
    const int step = m_stepModel->rowOf(m_store->step());
    if (step >= 0 && m_steps->currentIndex().row() != step) {
        m_steps->selectRow(step);
        m_steps->scrollTo(m_stepModel->index(step, 0));
    }
    m_moving = false;
    m_stepStack->setCurrentIndex(m_stepModel->rowCount() > 0 ? 0 : 1);
    m_noSteps->setText(m_store->current() ? tr("No step yet.") : tr("Choose a run to see its steps."));
    const QString shown = m_store->currentId();
    if (m_stepModel->rowCount() > 0 && std::exchange(m_shownSteps, shown) != shown)
        m_steps->resizeColumnsToContents();
}

/// The card that a step of a lift or an admission is about, where the workspace has it.
void RunsPanel::showCardOfStep()
{
    const RunEntryPtr run = m_store->current();
    const run::StepRecord *step = run ? run->step(m_store->step()) : nullptr;
    if (!step || step->cards.size() != 1 || run->record.settings.kind == run::Kind::Materialize)
        return;
    const QString card = QString::fromStdString(step->cards.front());
    if (m_workspace->card(card))
        m_selection->setCard(card);
}

void RunsPanel::showProgress()
{
    const RunEntryPtr run = m_store->current();
    const bool running = m_controller->isRunning();
    const RunProgress &progress = m_controller->progress();
    for (QAction *action : std::as_const(m_starts))
        action->setEnabled(!running && m_workspace->isLoaded());
    m_keys->setEnabled(m_controller->keys());
    m_resume->setEnabled(!running && run && !run->isFinished() && !run->isRunning());
    m_pause->setEnabled(running && !progress.pausing && !progress.stopping);
    m_stop->setEnabled(running && !progress.stopping);
    m_byHand->setEnabled(running);
    m_byHand->setChecked(running && progress.byHand);
    m_budget->setVisible(running && progress.capDollars > 0);
    if (running) {
        m_progressText->setText(progressLine(progress));
        m_budget->setValue(static_cast<int>(1000 * (progress.spentDollars + progress.reservedDollars)
                                            / std::max(progress.capDollars, 1e-9)));
    } else {
        m_progressText->setText(run ? endingLine(*run) : QString());
    }
    m_progressText->setToolTip(m_progressText->text());
}

StartDialog::Suggestion RunsPanel::selected() const
{
    StartDialog::Suggestion found;
    found.card = m_selection->card();
    found.lineage = m_selection->lineageKey();
    const lineage::Lineage *lineage = m_workspace->lineage(found.lineage);
    if (!lineage || lineage->states.empty())
        return found;
    const auto named = [&](const std::string &state) {
        return found.lineage + QLatin1Char('/') + QString::fromStdString(state);
    };
    const std::string row = m_selection->row().toStdString();
    const bool isState = lineage->findState(row);
    found.root = named(isState ? row : lineage->states.front().id);
    found.strongest = named(isState ? row : lineage->states.back().id);
    return found;
}

void RunsPanel::startRun(run::Kind kind)
{
    if (m_controller->isRunning() || !m_workspace->isLoaded())
        return;
    StartDialog dialog(m_workspace->workspace(), m_controller->keys(), this);
    dialog.setKind(kind);
    dialog.suggest(selected());
    if (m_last) {
        // The author and the budget as last time; what is worked on is what is selected now.
        run::StartRequest request = dialog.request();
        request.provider = m_last->provider;
        request.model = m_last->model;
        request.author = m_last->author;
        request.capDollars = m_last->capDollars;
        if (kind == run::Kind::Materialize && m_last->kind == kind) {
            request.policy = m_last->policy;
            request.maxSteps = m_last->maxSteps;
            request.seed = m_last->seed;
            request.options = m_last->options;
        }
        dialog.setRequest(request);
    }
    GateDesk *gates = m_controller->gates();
    if (gates)
        dialog.offerGates(gates->fileName(), gates->runPlace());
    if (dialog.exec() != QDialog::Accepted)
        return;
    if (gates) {
        if (const Status set = gates->setRunPlace(dialog.runPlace()); !set) {
            emit message(QString::fromStdString(set.error().message));
            return;
        }
    }
    m_last = dialog.request();
    if (const QString problem = m_controller->start(dialog.settings()); !problem.isEmpty())
        emit message(problem);
}

void RunsPanel::resumeRun()
{
    if (const QString problem = m_controller->resume(m_store->currentId()); !problem.isEmpty())
        emit message(problem);
}

} // namespace klineage::ui
