// SPDX-License-Identifier: GPL-3.0-or-later
//
// Which hardware counters are read, as data. Chips name some of them differently; a Metric's name does not say which chip it is from.
#pragma once

#include "core/trial/trial.h"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate::counters {

/// Buffer sets that runs under the profiler go round in, at most.
inline constexpr std::size_t mostSets = 64;

/// Whether the values of two launches of one kernel add up, or are averaged by their time.
enum class Kind { Amount, Rate };

struct CounterMetric {
    const char *name; ///< of metricnames.h
    const char *unit;
    Kind kind;
    std::vector<const char *>
        chipMetrics; ///< the first that the chip has is read; none: the chip does without
};

/// Counters that are read together, and in how many runs ("passes"): a chip counts only so many events at a time.
struct MetricSet {
    std::string_view name;
    std::vector<CounterMetric> metrics;
    std::vector<std::pair<std::string_view, int>> passes; ///< chip -> runs, as CUPTI 13.0 schedules them
};

/// In order of use: essential (1 run), memory, access, operations, stalls. Chosen so that few runs are needed; sm__throughput, which
/// takes eight alone on GH100, is left out on purpose.
[[nodiscard]] const std::vector<MetricSet> &metricSets();
[[nodiscard]] const MetricSet *findMetricSet(std::string_view name);

/// What one launch of a plan counted.
struct LaunchMetrics {
    std::string kernel;
    double weightNs = 0; ///< its duration, to average rates with
    std::vector<std::pair<const CounterMetric *, double>> values;
};

/// One metric a kernel, in order of first launch. Values that are not finite (a ratio over nothing) are left out.
[[nodiscard]] std::vector<Metric> combineLaunches(std::span<const LaunchMetrics> launches);

} // namespace klineage::gate::counters
