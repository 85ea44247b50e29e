// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/pool/gateclient.h"

#include <QObject>
#include <QString>

#include <functional>
#include <thread>
#include <vector>

namespace klineage::ui {

/// Which devices the gate can use. Asks in a thread of its own, because the answer loads drivers; lives on the GUI thread, where
/// its signal arrives.
class DeviceMonitor : public QObject
{
    Q_OBJECT

public:
    explicit DeviceMonitor(QObject *parent = nullptr);
    ~DeviceMonitor() override; ///< stops a query under way and waits for it

    void refresh(); ///< does nothing while a query is under way

    [[nodiscard]] bool hasAnswer() const { return m_hasAnswer; }
    [[nodiscard]] const std::vector<gate::DeviceInfo> &devices() const { return m_devices; }
    [[nodiscard]] QString error() const { return m_error; }

signals:
    void changed();

private:
    std::jthread m_thread;
    std::vector<gate::DeviceInfo> m_devices;
    QString m_error; ///< why the gate could not be asked; empty when it could
    bool m_running = false;
    bool m_hasAnswer = false;
};

} // namespace klineage::ui
