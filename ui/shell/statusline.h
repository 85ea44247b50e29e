// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"

#include <QStatusBar>

class QLabel;
class QProgressBar;
class QTimer;
class QToolButton;

namespace klineage::ui {

class DeviceMonitor;
class ElidedLabel;
class GateController;
class GateDesk;
class ProblemsModel;
class RunController;

/// The bar at the bottom: devices and their state, the last message, problems, the running trial and its stop.
class StatusLine : public QStatusBar
{
    Q_OBJECT

public:
    StatusLine(DeviceMonitor *devices, GateController *gate, ProblemsModel *problems,
               QWidget *parent = nullptr);

    /// The run that is shown while no trial is. Called once.
    void setRunner(RunController *runner);
    /// The gates of the pool, when there is one. Called once.
    void setGates(GateDesk *desk);
    /// Shown for a few seconds.
    void say(const QString &message);

signals:
    void problemsRequested();
    void consoleRequested();
    void runsRequested();
    void poolRequested();

protected:
    void changeEvent(QEvent *event) override;

private:
    void keepHeight();
    void showMessageText(const QString &message);
    void showDevices();
    void showProblems();
    void showJob(const QString &text);
    void showRun();
    void showPool();
    void showProgress(const gate::GateProgress &progress);

    DeviceMonitor *m_monitor;
    GateController *m_gate;
    RunController *m_runner = nullptr;
    GateDesk *m_desk = nullptr;
    ProblemsModel *m_problemsModel;
    QLabel *m_devices;
    QToolButton *m_pool;
    ElidedLabel *m_message;
    QToolButton *m_problems;
    QToolButton *m_job;
    QProgressBar *m_progress;
    QToolButton *m_stop;
    QTimer *m_messageTimer;
};

} // namespace klineage::ui
