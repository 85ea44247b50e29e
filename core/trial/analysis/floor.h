// SPDX-License-Identifier: GPL-3.0-or-later
//
// The time that no kernel can beat: what it has to move over the measured bandwidth, what it has to compute over the measured rate.
#pragma once

#include "core/trial/analysis/ceilings.h"

namespace klineage::gate {

/// What one run of a workload asks of a device. Zero: unknown, and nothing is bounded by it.
struct Demand {
    double flops = 0;
    double bytes = 0; ///< fewest bytes to and from memory
    double footprintBytes =
        0; ///< what is touched before anything is touched again: decides which level of memory answers
    /// "fp64", "fp32", "tf32", "half", "fp8": the arithmetic that the tolerances leave room for; empty: no rate bounds it.
    std::string precision;
};

/// The rates behind a floor, so that a verdict can cite them.
struct Floor {
    double ns = 0;        ///< the longer of the two; 0: no floor
    double memoryNs = 0;  ///< 0: not known
    double computeNs = 0; ///< 0: not known
    double bandwidth = 0; ///< B/s behind memoryNs
    double peak = 0;      ///< FLOP/s behind computeNs
    std::string peakName; ///< "bf16 (wgmma)", "three bf16 products": how the peak can be reached
    double margin = 0;    ///< below (1 − margin) × ns a time is suspect
    std::string missing;  ///< why a part is not known; empty when both are
};

/// A time is suspect when it is further below the floor than the figures can err. A ceiling is the best of several runs, so it is low
/// by what the device can do better at another time: 5 % covers the difference between the boost clocks of two runs of one GPU
/// (1980 and 1875 MHz on an H200); the clock of a shared CPU moves more, and 10 % covers what best-of-runs differ there from minute to
/// minute. A ceiling whose own runs spread wider than that gets its spread.
/// f32 may honestly be computed by three 16-bit tensor products, and every precision by a wider one, so the fastest of them counts.
[[nodiscard]] Floor rooflineFloor(const Demand &demand, const Ceilings &ceilings);

[[nodiscard]] bool isBelow(double ns, const Floor &floor);

} // namespace klineage::gate
