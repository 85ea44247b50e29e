// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/statusline.h"

#include "ui/runs/gatecontroller.h"
#include "ui/runs/gatedesk.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runprogress.h"
#include "ui/runs/verdicttext.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/problemsmodel.h"
#include "ui/style/icons.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/theme.h"

#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QProgressBar>
#include <QTimer>
#include <QToolButton>

namespace klineage::ui {

namespace {

constexpr int messageMs = 8000;

QString deviceName(kernel::DeviceKind kind)
{
    return QString::fromUtf8(kernel::traitsOf(kind).name);
}

} // namespace

StatusLine::StatusLine(DeviceMonitor *devices, GateController *gate, ProblemsModel *problems, QWidget *parent)
    : QStatusBar(parent)
    , m_monitor(devices)
    , m_gate(gate)
    , m_problemsModel(problems)
    , m_devices(new QLabel)
    , m_pool(new QToolButton)
    , m_message(new ElidedLabel)
    , m_problems(new QToolButton)
    , m_job(new QToolButton)
    , m_progress(new QProgressBar)
    , m_stop(new QToolButton)
    , m_messageTimer(new QTimer(this))
{
    setSizeGripEnabled(false);
    m_devices->setTextFormat(Qt::RichText);
    m_devices->setAccessibleName(tr("Devices"));
    m_devices->setObjectName(QStringLiteral("devices"));
    m_message->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    showMessageText({});
    m_problems->setIcon(icon(QStringLiteral("problems")));
    m_problems->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_progress->setFixedWidth(90);
    m_progress->setFixedHeight(10);
    m_progress->setTextVisible(false);
    m_progress->setAccessibleName(tr("Progress of the running trial"));
    m_stop->setIcon(icon(QStringLiteral("stop")));
    m_stop->setText(tr("Stop"));
    m_stop->setToolTip(tr("Stop what is running at once (Shift+Esc)"));
    m_stop->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_pool->hide();
    for (QToolButton *button : {m_pool, m_problems, m_job, m_stop}) {
        button->setIconSize(QSize(13, 13));
        button->setFocusPolicy(Qt::TabFocus);
    }

    auto *line = new QWidget;
    auto *row = new QHBoxLayout(line);
    row->setContentsMargins(8, 0, 4, 0);
    row->setSpacing(10);
    row->addWidget(m_devices);
    row->addWidget(m_pool);
    row->addWidget(m_message, 1);
    row->addWidget(m_problems);
    row->addWidget(m_job);
    row->addWidget(m_progress);
    row->addWidget(m_stop);
    addWidget(line, 1);

    m_messageTimer->setSingleShot(true);
    m_messageTimer->setInterval(messageMs);
    connect(m_messageTimer, &QTimer::timeout, this, [this] { showMessageText({}); });
    connect(m_problems, &QToolButton::clicked, this, &StatusLine::problemsRequested);
    connect(m_pool, &QToolButton::clicked, this, &StatusLine::poolRequested);
    connect(m_job, &QToolButton::clicked, this, [this] {
        if (m_gate->isRunning())
            emit consoleRequested();
        else
            emit runsRequested();
    });
    connect(m_stop, &QToolButton::clicked, this, [this] {
        m_gate->stop();
        if (m_runner)
            m_runner->stop();
    });
    connect(devices, &DeviceMonitor::changed, this, &StatusLine::showDevices);
    connect(problems, &QAbstractItemModel::modelReset, this, &StatusLine::showProblems);
    connect(problems, &QAbstractItemModel::rowsInserted, this, &StatusLine::showProblems);
    connect(gate, &GateController::started, this, [this](const GateJob &job) {
        showJob(QStringLiteral("%1 · %2").arg(job.candidateName, progressWord()));
    });
    connect(gate, &GateController::progressed, this,
            [this](quint64, const gate::GateProgress &progress) { showProgress(progress); });
    connect(gate, &GateController::finished, this, [this] { showJob({}); });
    connect(gate, &GateController::failed, this, [this] { showJob({}); });
    connect(gate, &GateController::stopped, this, [this] { showJob({}); });
    showDevices();
    showProblems();
    showJob({});
    keepHeight();
}

/// As high as a button, whether one is shown or not: what comes and goes here moves nothing in the window.
void StatusLine::keepHeight()
{
    constexpr int aroundText = 4; // of a button
    constexpr int aroundLine = 5; // of a status bar
    setFixedHeight(fontMetrics().height() + aroundText + aroundLine);
}

void StatusLine::changeEvent(QEvent *event)
{
    QStatusBar::changeEvent(event);
    if (event->type() == QEvent::FontChange || event->type() == QEvent::StyleChange)
        keepHeight();
}

void StatusLine::say(const QString &message)
{
    showMessageText(message);
    m_messageTimer->start();
}

/// What does not fit ends in dots, and is whole in the tool tip.
void StatusLine::showMessageText(const QString &message)
{
    m_message->setWhole(message);
    m_message->setAccessibleName(tr("Message"));
    m_message->setAccessibleDescription(message);
}

void StatusLine::showDevices()
{
    if (!m_monitor->hasAnswer()) {
        m_devices->setText(tr("Looking for devices…"));
        return;
    }
    const Theme &theme = Theme::current();
    if (!m_monitor->error().isEmpty()) {
        m_devices->setText(QStringLiteral("<span style='color:%1'>✗</span> %2")
                               .arg(theme.bad.name(), tr("gate not available")));
        m_devices->setToolTip(m_monitor->error());
        return;
    }
    QStringList parts;
    QStringList tips;
    for (const gate::DeviceInfo &device : m_monitor->devices()) {
        const QString name = QString::fromStdString(device.name).toHtmlEscaped();
        parts << QStringLiteral("<span style='color:%1'>%2</span> %3%4")
                     .arg(device.available ? theme.good.name() : theme.faint.name(),
                          device.available ? QStringLiteral("●") : QStringLiteral("○"),
                          deviceName(device.kind),
                          device.available ? QStringLiteral(" ") + name : tr(": no device"));
        tips << QStringLiteral("%1 %2\n%3")
                    .arg(deviceName(device.kind), QString::fromStdString(device.name),
                         QString::fromStdString(device.detail))
                    .trimmed();
    }
    m_devices->setText(parts.isEmpty() ? tr("no device") : parts.join(QStringLiteral("&nbsp;&nbsp;&nbsp;")));
    m_devices->setToolTip(tips.join(QStringLiteral("\n\n")));
}

void StatusLine::showProblems()
{
    const int rows = m_problemsModel->rowCount();
    m_problems->setVisible(rows > 0);
    m_problems->setText(rows == 1 ? tr("1 problem") : tr("%1 problems").arg(rows));
}

void StatusLine::showJob(const QString &text)
{
    const bool running = !text.isEmpty();
    for (QWidget *widget :
         {static_cast<QWidget *>(m_job), static_cast<QWidget *>(m_progress), static_cast<QWidget *>(m_stop)})
        widget->setVisible(running);
    m_job->setText(text);
    m_job->setToolTip({});
    m_progress->setRange(0, 0);
    if (!running)
        showRun();
}

void StatusLine::setRunner(RunController *runner)
{
    m_runner = runner;
    connect(runner, &RunController::progressed, this, &StatusLine::showRun);
    showRun();
}

void StatusLine::setGates(GateDesk *desk)
{
    m_desk = desk;
    connect(desk, &GateDesk::changed, this, &StatusLine::showPool);
    showPool();
}

void StatusLine::showPool()
{
    const QString problem = m_desk->problem();
    m_pool->setVisible(m_desk->hasGates() || !problem.isEmpty());
    m_pool->setText(problem.isEmpty() ? poolSummary(m_desk->state()) : tr("pool.toml cannot be read"));
    m_pool->setToolTip(
        problem.isEmpty()
            ? tr("Gates of the pool, what they do, and who waits")
            : tr("%1\nUntil it is mended, trials go to the gate of this machine.").arg(problem));
}

/// Dollars and tokens against the cap. A trial that was started by hand goes first.
void StatusLine::showRun()
{
    if (m_gate->isRunning() || !m_runner)
        return;
    const bool running = m_runner->isRunning();
    for (QWidget *widget :
         {static_cast<QWidget *>(m_job), static_cast<QWidget *>(m_progress), static_cast<QWidget *>(m_stop)})
        widget->setVisible(running);
    if (!running)
        return;
    const RunProgress &progress = m_runner->progress();
    m_job->setText(spendingText(progress));
    m_job->setToolTip(progressLine(progress));
    m_progress->setRange(0, 1000);
    m_progress->setValue(progress.capDollars > 0 ? static_cast<int>(
                             1000 * (progress.spentDollars + progress.reservedDollars) / progress.capDollars)
                                                 : 0);
}

void StatusLine::showProgress(const gate::GateProgress &progress)
{
    m_job->setText(QStringLiteral("%1 · %2").arg(m_gate->currentJob().candidateName, progressWord(progress)));
    m_job->setToolTip(QString::fromStdString(progress.text));
    m_progress->setRange(0, progress.fraction < 0 ? 0 : 1000);
    if (progress.fraction >= 0)
        m_progress->setValue(static_cast<int>(progress.fraction * 1000));
}

} // namespace klineage::ui
