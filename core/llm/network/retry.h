// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <random>
#include <stop_token>

namespace klineage::llm {

/// When and how often a request that certainly was not charged is sent again.
struct RetryPolicy {
    int attempts = 8;             ///< in all
    double firstDelaySeconds = 1; ///< doubled each time
    double maxDelaySeconds =
        60; ///< what the doubling ends at, and the longest that a server's Retry-After is believed
    double totalSeconds = 600; ///< no attempt begins after this
};

/// Exponential back-off, with half of it random so that clients do not come back all at once; not less than the seconds that the
/// server asked for (up to the longest delay; 0: none). attempt: 1 after the first failure.
[[nodiscard]] double retryDelay(const RetryPolicy &policy, int attempt, double retryAfter,
                                std::mt19937_64 &random);

/// Sleeps; false when it was stopped before the time was over.
[[nodiscard]] bool sleepFor(double seconds, const std::stop_token &stop);

} // namespace klineage::llm
