// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/devicemonitor.h"

#include <memory>

namespace klineage::ui {

namespace {

Result<std::vector<gate::DeviceInfo>> askGate(std::stop_token stop)
{
    const auto program = gate::findGateProgram();
    if (!program)
        return tl::unexpected(program.error());
    return gate::queryDevices(*program, std::move(stop));
}

} // namespace

DeviceMonitor::DeviceMonitor(QObject *parent)
    : QObject(parent)
{}

DeviceMonitor::~DeviceMonitor() = default; // the thread is stopped and joined by its own destructor

void DeviceMonitor::refresh()
{
    if (m_running)
        return;
    m_running = true;
    m_thread = std::jthread([this](std::stop_token stop) {
        auto answer = std::make_shared<Result<std::vector<gate::DeviceInfo>>>(askGate(stop));
        if (stop.stop_requested())
            return;
        QMetaObject::invokeMethod(
            this,
            [this, answer] {
                m_running = false;
                m_hasAnswer = true;
                m_devices = *answer ? **answer : std::vector<gate::DeviceInfo>{};
                m_error = *answer ? QString() : QString::fromStdString(answer->error().message);
                emit changed();
            },
            Qt::QueuedConnection);
    });
}

} // namespace klineage::ui
