// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/launch/launchnumbers.h"

#include <string>
#include <vector>

namespace klineage::gate {

/// One side of a row: a number with the row's unit, or words ("128 × 4", "not recorded").
struct LaunchCell {
    std::optional<double> value;
    std::string text;

    friend bool operator==(const LaunchCell &, const LaunchCell &) = default;
};

/// One line of the comparison of two launch plans.
struct LaunchRow {
    std::string kernel; ///< "gemm"; of both sides when each has one launch of another name: "gemm_a, gemm_b"
    std::string label;  ///< "Registers / thread"
    std::string unit;   ///< "B", "%", "" for counts
    LaunchCell before;
    LaunchCell after;
    bool differs = false; ///< and both sides say something
};

/// The launches of both sides beside each other: those of the same kernel, in their order. A side that has no such launch says so, and so
/// does a figure that was not recorded; what neither side has is left out.
[[nodiscard]] std::vector<LaunchRow> launchRows(const std::vector<LaunchNumbers> &before,
                                                const std::vector<LaunchNumbers> &after);

} // namespace klineage::gate
