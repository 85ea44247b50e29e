// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/shareof.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

/// The probability of at most `count` of `trials` where each has the probability p.
double binomialUpTo(int count, int trials, double p)
{
    if (p <= 0)
        return 1;
    if (p >= 1)
        return count >= trials ? 1 : 0;
    double sum = 0;
    for (int k = 0; k <= count; ++k)
        sum += std::exp(std::lgamma(trials + 1.0) - std::lgamma(k + 1.0) - std::lgamma(trials - k + 1.0)
                        + k * std::log(p) + (trials - k) * std::log1p(-p));
    return std::min(sum, 1.0);
}

/// Where a probability that falls with p goes below `level`.
double fallsBelow(double level, int count, int trials)
{
    double low = 0;
    double high = 1;
    for (int i = 0; i < 60; ++i) {
        const double middle = 0.5 * (low + high);
        (binomialUpTo(count, trials, middle) > level ? low : high) = middle;
    }
    return 0.5 * (low + high);
}

} // namespace

Interval shareOf(int count, int trials)
{
    if (trials <= 0)
        return {0, 0, 1};
    constexpr double side = 0.025;
    const double low = count == 0 ? 0 : fallsBelow(1 - side, count - 1, trials);
    const double high = count >= trials ? 1 : fallsBelow(side, count, trials);
    return {static_cast<double>(count) / trials, low, high};
}

} // namespace klineage::gate
