// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/interrupt.h"

#include <csignal>
#include <ctime>

namespace klineage::cli {

InterruptWatcher::InterruptWatcher()
{
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    m_thread = std::jthread([signals, stop = m_stop](std::stop_token ended) mutable {
        constexpr timespec pause{0, 50'000'000};
        while (!ended.stop_requested() && !stop.stop_requested()) {
            if (sigtimedwait(&signals, nullptr, &pause) > 0)
                stop.request_stop();
        }
    });
}

} // namespace klineage::cli
