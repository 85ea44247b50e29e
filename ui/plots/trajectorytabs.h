// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

class QStackedWidget;

namespace klineage::ui {

class RunStore;
class RunTrajectoryPanel;
class SegmentedSwitch;
class Selection;
class TrajectoryPanel;
class WorkspaceModel;

/// The trajectory of the selected lineage's trials, or of the runs: one at a time, by a switch.
class TrajectoryTabs : public QWidget
{
    Q_OBJECT

public:
    TrajectoryTabs(WorkspaceModel *workspace, Selection *selection, RunStore *runs,
                   QWidget *parent = nullptr);

    void showRuns(bool runs);
    [[nodiscard]] bool showsRuns() const;
    [[nodiscard]] TrajectoryPanel *trials() const { return m_trials; }
    [[nodiscard]] RunTrajectoryPanel *runs() const { return m_runs; }

private:
    SegmentedSwitch *m_switch;
    QStackedWidget *m_stack;
    TrajectoryPanel *m_trials;
    RunTrajectoryPanel *m_runs;
};

} // namespace klineage::ui
