// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QString>

#include <optional>
#include <vector>

namespace klineage::ui {

/// Which direction of a metric is an improvement.
enum class Better { Lower, Higher, Neither };

/// One metric on both sides of a step. A side that has no such figure is empty, never zero.
struct ProfileRow {
    QString name;  ///< stable metric name, "registers"
    QString label; ///< "Registers / thread"
    QString unit;  ///< "ns", "B", "FLOP/s", "B/s", "%", "J", "W", "" for counts
    std::optional<double> left;
    std::optional<double> right;
    Better better = Better::Neither;
    QString note; ///< where the figure comes from when that is not obvious: "largest of 2 kernels"

    /// right / left - 1 for ratios; nothing when a side is missing or the left one is zero.
    [[nodiscard]] std::optional<double> relativeChange() const;
    /// right - left; for percentages and counts that start at zero.
    [[nodiscard]] std::optional<double> absoluteChange() const;
    /// +1 improvement, -1 deterioration, 0 neither, unchanged or unknown.
    [[nodiscard]] int direction() const;
    /// Size of the change in [0, ∞), used for sorting and for the bar: |ln(right / left)|, 0 when unknown.
    [[nodiscard]] double magnitude() const;
};

/// All metrics of both trials; latency, rate and bandwidth first, the rest by size of change. Either trial may be null.
[[nodiscard]] std::vector<ProfileRow> profileDelta(const gate::Trial *left, const gate::Trial *right);

} // namespace klineage::ui
