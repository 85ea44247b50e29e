// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runform.h"

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

    /// Asks what to start, and starts it.
    void startRun();
    void resumeRun();
    [[nodiscard]] QTableView *runs() const { return m_runs; }
    [[nodiscard]] QTableView *steps() const { return m_steps; }
    [[nodiscard]] QList<QAction *> commands() const { return m_commands; }
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
    void showRuns();
    void showCurrent();
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
    QAction *m_start = nullptr;
    QAction *m_resume = nullptr;
    QAction *m_pause = nullptr;
    QAction *m_stop = nullptr;
    QAction *m_byHand = nullptr;
    RunForm m_lastForm;
    int m_shownRuns = 0;   ///< rows that the columns were fitted to
    QString m_shownSteps;  ///< run whose steps they were fitted to
    bool m_moving = false; ///< the view follows the store
};

} // namespace klineage::ui
