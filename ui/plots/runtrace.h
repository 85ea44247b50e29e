// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/table/plottable.h"
#include "ui/runs/runentry.h"

namespace klineage::ui {

/// A step of a run on its trajectory.
struct RunTracePoint {
    enum class Kind { Valid, Audited, Wrapper, Failed, Other };
    int step = 0;
    double dollars = 0; ///< of the run up to and with the step
    double best = 0;
    double speedup = 0; ///< 0: not measured
    Kind kind = Kind::Other;
    QString label; ///< "step 4 · repair: failed · It is wrong."
};

/// Running best against what was spent, of one run, as recorded: never smoothed, and nothing left out.
struct RunTrace {
    QString run;
    QString name; ///< "klineage · softmax-klineage-…"
    QString reference;
    double capDollars = 0;
    double loadDollars = 0; ///< for reading cards, before anything can get better
    std::vector<RunTracePoint> points;
};

/// Of a step by its outcome: "valid", "failed", ….
[[nodiscard]] RunTracePoint::Kind traceKind(const std::string &outcome);
[[nodiscard]] RunTrace runTrace(const RunEntry &run);
/// The run first, then the others that can be laid over it: of the same workload, platform and reference, newest first.
[[nodiscard]] std::vector<RunTrace> tracesBeside(const std::vector<RunEntryPtr> &runs, const QString &current,
                                                 std::size_t most);
/// A row a step, also of those that have no speedup to be drawn. Ids are "<run>#<step>".
[[nodiscard]] PlotTable runTraceTable(const std::vector<RunTrace> &traces);

} // namespace klineage::ui
