// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/gatedesk.h"

#include <QCoreApplication>
#include <QThreadPool>

#include <algorithm>
#include <iterator>
#include <mutex>

namespace klineage::ui {

namespace {

constexpr int lookMs = 1000;

/// What can be seen of a pool, to tell whether it changed.
QString seenOf(const gate::PoolState &state)
{
    QString seen = QString::number(state.waiting);
    for (const gate::GateState &gate : state.gates)
        seen += QStringLiteral(" %1 %2 %3").arg(int(gate.phase)).arg(gate.trials).arg(gate.losses)
                + QString::fromStdString(gate.stand);
    return seen;
}

/// Ending jobs takes seconds.
void endElsewhere(std::shared_ptr<gate::GatePool> pool)
{
    if (pool)
        QThreadPool::globalInstance()->start([pool = std::move(pool)] {});
}

} // namespace

struct GateDesk::Shared {
    std::mutex mutex;
    std::shared_ptr<gate::GatePool> pool; ///< none: each have their own
    std::shared_ptr<gate::GatePool> person = std::make_shared<gate::GatePool>();
    std::shared_ptr<gate::GatePool> runs = std::make_shared<gate::GatePool>();
    std::shared_ptr<gate::GatePool> launched; ///< the gate of a launcher, when runs ask it
    RunPlace::Gates gatesOfRuns = RunPlace::Pool;

    [[nodiscard]] std::shared_ptr<gate::GatePool> chosen(bool forRuns)
    {
        const std::scoped_lock lock(mutex);
        if (forRuns && launched)
            return launched;
        if (pool && !(forRuns && gatesOfRuns == RunPlace::Here))
            return pool;
        return forRuns ? runs : person;
    }
};

GateDesk::GateDesk(QObject *parent)
    : QObject(parent)
    , m_shared(std::make_shared<Shared>())
{
    m_timer.setInterval(lookMs);
    connect(&m_timer, &QTimer::timeout, this, &GateDesk::look);
}

GateDesk::~GateDesk() = default;

void GateDesk::open(const QString &workspace)
{
    Result<gate::PoolFile> found = gate::findPool(workspace.toStdString());
    m_problem = found ? QString() : QString::fromStdString(found.error().message);
    gate::PoolFile file = found ? std::move(*found) : gate::PoolFile();
    if (file.file == m_file.file && file.text == m_file.text) {
        emit changed();
        return;
    }
    m_file = std::move(file);
    auto pool = hasPool() ? std::make_shared<gate::GatePool>(m_file.gates, m_file.options()) : nullptr;
    {
        const std::scoped_lock lock(m_shared->mutex);
        m_shared->pool.swap(pool);
    }
    endElsewhere(std::move(pool));
    watch();
}

void GateDesk::watch()
{
    if (hasGates())
        m_timer.start();
    else
        m_timer.stop();
    emit changed();
}

QString GateDesk::fileName() const
{
    return QString::fromStdString(m_file.file.string());
}

gate::PoolState GateDesk::state() const
{
    std::shared_ptr<gate::GatePool> pool;
    std::shared_ptr<gate::GatePool> launched;
    {
        const std::scoped_lock lock(m_shared->mutex);
        pool = m_shared->pool;
        launched = m_shared->launched;
    }
    gate::PoolState state = pool ? pool->state() : gate::PoolState();
    if (launched) {
        gate::PoolState more = launched->state();
        std::move(more.gates.begin(), more.gates.end(), std::back_inserter(state.gates));
        state.waiting += more.waiting;
    }
    return state;
}

void GateDesk::look()
{
    QString seen = seenOf(state());
    if (seen == m_seen)
        return;
    m_seen = std::move(seen);
    emit changed();
}

Status GateDesk::setRunPlace(const RunPlace &place)
{
    std::shared_ptr<gate::GatePool> launched;
    if (place.gates == RunPlace::Launched) {
        if (m_runPlace.gates == RunPlace::Launched && place.launcher == m_runPlace.launcher)
            return {};
        Result<gate::PoolFile> one = gate::poolOfLauncher(place.launcher.toStdString());
        if (!one)
            return tl::unexpected(one.error());
        launched = std::make_shared<gate::GatePool>(std::move(one->gates), one->options());
    }
    m_runPlace = place;
    {
        const std::scoped_lock lock(m_shared->mutex);
        m_shared->gatesOfRuns = place.gates;
        m_shared->launched.swap(launched);
    }
    endElsewhere(std::move(launched));
    watch();
    return {};
}

GateController::Runner GateDesk::runnerForPerson() const
{
    return [shared = m_shared](const gate::GateRequest &request, std::stop_token stop,
                               gate::ProgressCallback progress) {
        return shared->chosen(false)->run(request, std::move(stop), std::move(progress));
    };
}

GateController::Runner GateDesk::runnerForRuns() const
{
    return [shared = m_shared](const gate::GateRequest &request, std::stop_token stop,
                               gate::ProgressCallback progress) {
        return shared->chosen(true)->run(request, std::move(stop), std::move(progress));
    };
}

QString poolSummary(const gate::PoolState &state)
{
    const auto busy = std::count_if(state.gates.begin(), state.gates.end(), [](const gate::GateState &gate) {
        return gate.phase == gate::GatePhase::Busy;
    });
    const QString gates = QCoreApplication::translate("klineage::ui::GateDesk", "%1 of %2 gates busy")
                              .arg(busy)
                              .arg(state.gates.size());
    if (state.waiting == 0)
        return gates;
    return state.waiting == 1
               ? QCoreApplication::translate("klineage::ui::GateDesk", "%1, 1 trial waits").arg(gates)
               : QCoreApplication::translate("klineage::ui::GateDesk", "%1, %2 trials wait")
                     .arg(gates)
                     .arg(state.waiting);
}

} // namespace klineage::ui
