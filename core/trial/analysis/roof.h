// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/ceilings.h"

#include <optional>

namespace klineage::gate {

/// The ceilings that one trial is held against.
struct Roof {
    double bandwidth = 0; ///< B/s of a copy over the footprint that the timed runs touch; 0: not measured
    double peak = 0;      ///< FLOP/s of the workload's precision; 0: not measured
    std::string peakName; ///< "bf16"
    double fp32 = 0;      ///< FLOP/s without tensor cores; 0: not measured
    double launchNs = 0;  ///< device time of a launch that does nothing; 0: not measured

    [[nodiscard]] double ridge() const { return bandwidth > 0 ? peak / bandwidth : 0; } ///< FLOP/B
};

// The facts of an environment that carry a roof: roofline_bandwidth, roofline_footprint, roofline_precision, roofline_flops_<rate>,
// roofline_launch_ns, roofline_measured.
void recordRoof(const Ceilings &ceilings, double footprintBytes, const std::string &precision,
                Environment &environment);
/// As it was recorded with the trial; nothing when the device was not measured then.
[[nodiscard]] std::optional<Roof> recordedRoof(const Environment &environment);

} // namespace klineage::gate
