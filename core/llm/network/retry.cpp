// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/retry.h"

#include "core/process/deadline.h"
#include "core/process/stopevent.h"

#include <poll.h>

#include <algorithm>
#include <cmath>

namespace klineage::llm {

double retryDelay(const RetryPolicy &policy, int attempt, double retryAfter, std::mt19937_64 &random)
{
    const double doubled = policy.firstDelaySeconds * std::pow(2.0, std::min(attempt - 1, 30));
    const double whole = std::min(policy.maxDelaySeconds, doubled);
    const double part = static_cast<double>(random() >> 11) * 0x1p-53; // 0 … 1
    const double delay = whole * (0.5 + 0.5 * part);
    return std::max(delay, std::min(retryAfter, policy.maxDelaySeconds));
}

bool sleepFor(double seconds, const std::stop_token &stop)
{
    const process::StopEvent stopEvent(stop);
    const auto deadline = process::Deadline::in(seconds);
    while (!stop.stop_requested() && !deadline.passed()) {
        pollfd waiting{stopEvent.fd(), POLLIN, 0};
        ::poll(&waiting, 1, deadline.pollTimeoutMs());
    }
    return !stop.stop_requested();
}

} // namespace klineage::llm
