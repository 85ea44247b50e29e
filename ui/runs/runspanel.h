// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/startdialog.h"

#include <QWidget>

class QAction;
class QLabel;
class QProgressBar;
class QStackedWidget;
class QTableView;
class QToolButton;

namespace klineage::ui {

class RunController;
class RunListModel;
class RunStepModel;
class RunStore;
class Selection;
class WorkspaceModel;

/// The workspace's runs, and the steps of the one that is looked at. Starts, pauses, stops and goes on with runs.
class RunsPanel : public QWidget
{
    Q_OBJECT

public:
    RunsPanel(WorkspaceModel *workspace, Selection *selection, RunStore *store, RunController *controller,
              QWidget *parent = nullptr);

    /// Asks what to start, with what is selected in the window as the first choice, and starts it.
    void startRun(run::Kind kind = run::Kind::Materialize);
    void resumeRun();
    [[nodiscard]] QTableView *runs() const { return m_runs; }
    [[nodiscard]] QTableView *steps() const { return m_steps; }
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }
    /// Those that begin with what is selected: for context menus.
    [[nodiscard]] QList<QAction *> startCommands() const { return m_starts; }
    [[nodiscard]] bool isEmpty() const;
    [[nodiscard]] QLabel *progressText() const { return m_progressText; }

signals:
    void message(const QString &text);
    /// A step was opened (double-click, Return): the centre should show it.
    void stepActivated();

private:
    void makeCommands();
    QAction *command(const QString &name, const QString &text, const QString &tip, const QKeySequence &key,
                     const std::function<void()> &act);
    QWidget *makeBar();
    void connectViews();
    [[nodiscard]] StartDialog::Suggestion selected() const;
    void showRuns();
    void showCurrent();
    void showCardOfStep();
    void showProgress();

    WorkspaceModel *m_workspace;
    Selection *m_selection;
    RunStore *m_store;
    RunController *m_controller;
    RunListModel *m_runModel;
    RunStepModel *m_stepModel;
    QStackedWidget *m_stack;
    QTableView *m_runs;
    QTableView *m_steps;
    QLabel *m_noSteps;
    QStackedWidget *m_stepStack;
    QProgressBar *m_budget;
    QLabel *m_progressText;
    QList<QAction *> m_commands;
    QList<QAction *> m_starts; ///< one a kind
    QAction *m_start = nullptr;
    QAction *m_resume = nullptr;
    QAction *m_pause = nullptr;
    QAction *m_stop = nullptr;
    QAction *m_byHand = nullptr;
    QAction *m_keys = nullptr;
    std::optional<run::StartRequest> m_last; ///< what was started last
    int m_shownRuns = 0;                     ///< rows that the columns were fitted to
    QString m_shownSteps;                    ///< run whose steps they were fitted to
    bool m_moving = false;                   ///< the view follows the store
};

} // namespace klineage::ui
