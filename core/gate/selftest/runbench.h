// SPDX-License-Identifier: GPL-3.0-or-later
//
// The gate measures itself: how soon a verdict is there, and how well it tells one kernel from another.
#pragma once

#include "core/gate/selftest/benchfile.h"
#include "core/gate/supervisor/supervisor.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace klineage::gate {

struct BenchOptions {
    SupervisorOptions supervisor;
    std::optional<kernel::Surface> surface; ///< only cases of this surface
    std::string filter;                     ///< only cases with this in their name
    int verdicts = 20;                      ///< of a latency case, after two that warm up
    double latencyProfileSeconds = 0.1;     ///< longest timing of one of them that has no parent
    int trials = 100;                       ///< of a discrimination case, A/A and planted each; 0: none
    bool same = true;                       ///< compare a candidate with a copy of itself
    bool slowed = true;                     ///< compare it with a slowed one
    bool quick = false;                     ///< trials stop when they are decided
    double planted = 0.005;                 ///< slowdown
    long plantedCycles = 0;    ///< how many cycles that is, where it is known from another run; 0: found out
    double halfWidth = 0.001;  ///< asked for in discrimination trials
    double profileSeconds = 2; ///< longest timing of one of them
    double limitSeconds = 0;   ///< begin no new trial after this long; 0: no limit
};

/// Runs the cases and reports lines of JSON:
///   {"bench": "latency", "case", "device", "verdicts", "p50_s", "p95_s", "per_second", "stages": {stage: share},
///    "operations_ms": {operation of the worker: [milliseconds, times] a verdict}},
///    and against a parent "quick", "speedup_p50", "half_width_p50", "half_width_max", "changes": {change: verdicts}
///   {"bench": "same", "case", "device", "latency_us", "trials", "gains", "losses", "undecided", "half_width_p50", "half_width_max", …}
///   {"bench": "planted", …, "planted", "found"}
/// "same" compares two separate copies of one candidate. Fails when the gate does, or when a verdict is not "correct".
[[nodiscard]] Status runBench(const std::vector<BenchCase> &cases, const BenchOptions &options,
                              const std::stop_token &stop,
                              const std::function<void(const nlohmann::json &)> &report);

} // namespace klineage::gate
