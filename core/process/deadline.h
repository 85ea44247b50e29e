// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <chrono>

namespace klineage::process {

/// A point on the steady clock by which something must have happened.
class Deadline
{
public:
    using Clock = std::chrono::steady_clock;

    [[nodiscard]] static Deadline never() { return Deadline(Clock::time_point::max()); }
    [[nodiscard]] static Deadline in(double seconds)
    {
        return Deadline(Clock::now()
                        + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8))));
    }
    [[nodiscard]] static Deadline earlier(Deadline a, Deadline b)
    {
        return Deadline(std::min(a.m_when, b.m_when));
    }

    /// The same, moved by so many seconds.
    [[nodiscard]] Deadline later(double seconds) const
    {
        if (m_when == Clock::time_point::max())
            return *this;
        return Deadline(m_when
                        + std::chrono::duration_cast<Clock::duration>(
                            std::chrono::duration<double>(std::clamp(seconds, 0.0, 1e8))));
    }
    [[nodiscard]] bool passed() const { return Clock::now() >= m_when; }
    /// Seconds left, never negative; a very large number when there is no deadline.
    [[nodiscard]] double secondsLeft() const
    {
        if (m_when == Clock::time_point::max())
            return 1e8;
        return std::max(0.0, std::chrono::duration<double>(m_when - Clock::now()).count());
    }
    /// For poll(): rounded up, at most one minute.
    [[nodiscard]] int pollTimeoutMs() const
    {
        return static_cast<int>(std::min(60.0, secondsLeft()) * 1000.0 + 0.999);
    }

private:
    explicit Deadline(Clock::time_point when)
        : m_when(when)
    {}
    Clock::time_point m_when;
};

} // namespace klineage::process
