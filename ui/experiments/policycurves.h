// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/results.h"
#include "ui/plots/runtrace.h"

#include <QPointF>

namespace klineage::ui {

/// Running best of one run, from its root's speed at nothing spent: what was recorded, nothing smoothed.
struct SeedCurve {
    QString run;
    quint64 seed = 0;
    bool isOver = false;
    bool isSuccess = false;
    double loadDollars = 0;            ///< for reading cards, before anything can get better
    std::vector<RunTracePoint> points; ///< the first is the root: step 0
};

/// A policy on one root.
struct PolicyCurve {
    QString policy;
    std::size_t series = 0; ///< the same for a policy on every root
    std::vector<SeedCurve> seeds;
    /// Steps of the median of the running bests of the seeds that are over, failures at their root's speed. Each holds its last value;
    /// of an even number the geometric mean of the middle two. Empty while none is over.
    std::vector<QPointF> median;
    int medianOf = 0; ///< how many seeds
};

/// A root with all policies: one of the small plots.
struct RootCurves {
    QString root;
    QString reference; ///< of its runs, all of them should they differ; empty: none has begun
    double rootSpeedup = 0;
    double loadDollars = 0; ///< the most of any run
    double capDollars = 0;
    double right = 0; ///< largest x, of dollars or of steps
    double top = 0;   ///< largest speedup
    std::vector<PolicyCurve> policies;

    [[nodiscard]] bool isEmpty() const { return right <= 0; }
};

struct ExperimentCurves {
    bool costs = false; ///< some step cost something: x is dollars, else steps
    std::vector<RootCurves> roots;

    [[nodiscard]] double x(const RunTracePoint &point) const { return costs ? point.dollars : point.step; }
};

[[nodiscard]] ExperimentCurves curvesOf(const run::Experiment &experiment,
                                        const run::ExperimentResults &results);

/// Median at each place where one of the step lines changes; lines hold their last value. Of none: empty.
[[nodiscard]] std::vector<QPointF> medianSteps(const std::vector<std::vector<QPointF>> &lines);

} // namespace klineage::ui
