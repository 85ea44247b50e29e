// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "ui/plots/table/plottable.h"

#include <QString>

#include <vector>

namespace klineage::ui {

/// One trial on the trajectory.
struct TrajectoryPoint {
    enum class Kind {
        Valid,
        Unpaired, ///< right, but not timed beside the reference: its time in another trial over this one's
        Failed
    };
    double trial = 0;   ///< 1-based position in trials.jsonl among the trials of this lineage
    double speedup = 0; ///< T_ref / T; 0 when it failed
    Kind kind = Kind::Valid;
    QString row; ///< Selection row id
    QString label;
};

/// A trial of another device: it has no place on the axes.
struct TrajectoryElsewhere {
    QString row;
    QString label;
    QString outcome; ///< "1.24 ms", "wrong"
    QString device;
};

/// Speedup of each trial in the order in which they were recorded. Never smoothed; a failure is a point, not a gap.
struct Trajectory {
    std::vector<TrajectoryPoint> points; ///< all of `device`
    std::vector<TrajectoryElsewhere> elsewhere;
    QString device; ///< empty: no trial says where it ran
    QString
        reference; ///< "openblas", or "K0" when no trial was timed beside a vendor reference; empty when there are no points

    bool isPaired = false; ///< else speedups are ratios of medians of two trials

    /// The best speedup up to and including each point. What is not paired lifts it no higher than the best of what is.
    [[nodiscard]] std::vector<double> runningBest() const;
    /// "2 trials on AMD EPYC are set apart"; empty: there are none.
    [[nodiscard]] QString elsewhereInWords() const;
};

/// Takes the trials that states, attempts and branches stand for.
[[nodiscard]] Trajectory lineageTrajectory(const lineage::Lineage &lineage);
/// A row a trial: what it stands for, how it ended, its speedup and the best one so far.
[[nodiscard]] PlotTable trajectoryTable(const Trajectory &trajectory);

} // namespace klineage::ui
