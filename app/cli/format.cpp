// SPDX-License-Identifier: GPL-3.0-or-later
#include "app/cli/format.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace klineage::cli {

namespace {

/// Four significant digits, never an exponent for the magnitudes that units leave (1 to 9999).
std::string fourDigits(double value)
{
    const double magnitude = std::fabs(value);
    const int decimals = magnitude >= 1000 ? 0 : magnitude >= 100 ? 1 : magnitude >= 10 ? 2 : 3;
    char buffer[64] = {};
    std::snprintf(buffer, sizeof buffer, "%.*f", decimals, value);
    return buffer;
}

} // namespace

std::string formatNs(double ns)
{
    if (ns < 1e3)
        return fourDigits(ns) + " ns";
    if (ns < 1e6)
        return fourDigits(ns / 1e3) + " µs";
    if (ns < 1e9)
        return fourDigits(ns / 1e6) + " ms";
    return fourDigits(ns / 1e9) + " s";
}

std::string formatLatency(const gate::Interval &ns)
{
    if (ns.value <= 0)
        return "–";
    const double halfWidth = std::max(ns.high - ns.value, ns.value - ns.low) / ns.value * 100;
    char buffer[32] = {};
    std::snprintf(buffer, sizeof buffer, " ±%.2f %%", halfWidth);
    return formatNs(ns.value) + buffer;
}

std::string formatSpeedup(const gate::Interval &speedup)
{
    return fourDigits(speedup.value) + "× [" + fourDigits(speedup.low) + ", " + fourDigits(speedup.high)
           + "]";
}

std::string formatRate(double perSecond, const char *unit)
{
    constexpr const char *prefixes[] = {"", "k", "M", "G", "T", "P"};
    std::size_t index = 0;
    while (perSecond >= 1e3 && index + 1 < std::size(prefixes)) {
        perSecond /= 1e3;
        ++index;
    }
    return fourDigits(perSecond) + ' ' + prefixes[index] + unit + "/s";
}

std::string formatLatency(const std::optional<gate::Interval> &ns)
{
    return ns ? formatLatency(*ns) : "–";
}

std::string formatSpeedup(const std::optional<gate::Interval> &speedup)
{
    return speedup ? formatSpeedup(*speedup) : "–";
}

nlohmann::json jsonOf(const gate::Interval &interval)
{
    return {{"value", interval.value}, {"low", interval.low}, {"high", interval.high}};
}

nlohmann::json jsonOf(const std::optional<gate::Interval> &interval)
{
    return interval ? jsonOf(*interval) : nlohmann::json();
}

} // namespace klineage::cli
