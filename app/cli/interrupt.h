// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <stop_token>
#include <thread>

namespace klineage::cli {

/// While it lives, Ctrl+C and SIGTERM become a stop request instead of ending the program, so that the gate can be stopped and
/// reaped. Make it before other threads are started: it blocks the signals in this thread and those that follow.
class InterruptWatcher
{
public:
    InterruptWatcher();

    [[nodiscard]] std::stop_token token() const { return m_stop.get_token(); }

private:
    std::stop_source m_stop;
    std::jthread m_thread;
};

} // namespace klineage::cli
