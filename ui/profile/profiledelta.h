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
    /// How its change was measured. Exact: said by compiler and launch plan, every difference is one.
    enum class Kind { Paired, Timed, Counter, Exact, Bookkeeping };
    Kind kind = Kind::Counter;
    /// Paired: right / left of the same rounds with its 95 % interval, which the medians alone need not give.
    std::optional<gate::Interval> pairedRatio;

    /// right / left - 1 for ratios; nothing when a side is missing or the left one is zero.
    [[nodiscard]] std::optional<double> relativeChange() const;
    /// right - left; for percentages and counts that start at zero.
    [[nodiscard]] std::optional<double> absoluteChange() const;
    /// +1 improvement, -1 deterioration, 0 neither, unchanged, noise or unknown.
    [[nodiscard]] int direction() const;
    /// Size of the change from 0 to 1, for sorting and for the bar: the part by which the larger side exceeds the smaller one; of
    /// percentages their difference as a part of 100 points. 0 when unknown.
    [[nodiscard]] double impact() const;
    /// The change is no larger than such figures vary by themselves: a paired interval that holds 1, less than 1 percentage point,
    /// less than 2 % of a counter or of a time that was not paired.
    [[nodiscard]] bool isNoise() const;
};

/// All metrics of both trials; latency, rate and bandwidth first, then what changed by its impact, then noise, then what is equal, at last
/// the seconds of the gate's stages.
/// Either trial may be null. paired: the right trial's comparison with the left candidate, where it was timed beside it; its figures stand
/// also where the left trial is left out.
[[nodiscard]] std::vector<ProfileRow> profileDelta(const gate::Trial *left, const gate::Trial *right,
                                                   const gate::Comparison *paired = nullptr);

/// "Registers / thread": what a metric is called in the window.
[[nodiscard]] QString metricLabel(const std::string &name);
/// A metric's value with its unit. Counts of a profiler run into the billions; three digits of them are compared.
[[nodiscard]] QString profileFigure(double value, const QString &unit);

} // namespace klineage::ui
