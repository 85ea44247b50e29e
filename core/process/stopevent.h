// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"

#include <cstdint>
#include <optional>
#include <stop_token>
#include <sys/eventfd.h>

namespace klineage::process {

/// Makes a stop request visible to poll(): fd() becomes readable when the token is stopped. Lives no longer than the wait.
class StopEvent
{
public:
    explicit StopEvent(const std::stop_token &stop)
    {
        if (!stop.stop_possible())
            return;
        m_event = FileDescriptor(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
        if (m_event)
            m_callback.emplace(stop, Signal{m_event.get()});
    }
    /// -1 when no stop is possible; poll() skips negative descriptors.
    [[nodiscard]] int fd() const { return m_event.get(); }

private:
    struct Signal {
        int fd;
        void operator()() const noexcept
        {
            const std::uint64_t one = 1;
            [[maybe_unused]] const auto written = ::write(fd, &one, sizeof one);
        }
    };
    FileDescriptor m_event;
    std::optional<std::stop_callback<Signal>>
        m_callback; // after m_event: unregistered before the descriptor is closed
};

} // namespace klineage::process
