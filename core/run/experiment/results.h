// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/experiment.h"
#include "core/run/summary.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::run {

/// A cell and what its run came to.
struct CellResult {
    Cell cell;
    std::string state; ///< "missing", "running", "stopped", "finished", "unreadable"
    Ending ending;     ///< as in RunRecord; of an unreadable one the reason says what is wrong
    Summary summary;
    /// It is over and brought a candidate that is faster than the root.
    [[nodiscard]] bool isSuccess() const;
    [[nodiscard]] bool isOver() const { return state == "finished"; }
};

/// Over the runs of a policy, on one root or (root empty) on all.
struct PolicyResult {
    std::string policy;
    std::string root;
    double geometricMean = 0; ///< of the final speedups of the successes alone; 0: none
    int successes = 0;
    int failures = 0;   ///< over, without a success: counted, not averaged
    int unfinished = 0; ///< not over yet, or missing
    double dollars = 0;
};

struct ExperimentResults {
    std::vector<CellResult> cells;
    std::vector<PolicyResult> policies; ///< each policy on each root, then on all
};

/// Reads what is there; nothing is run.
[[nodiscard]] ExperimentResults readResults(const Experiment &experiment);

/// "root,policy,seed,step,dollars,best,speedup,action,outcome" and a line a step: the trajectories. Speedups that were not measured are
/// empty, here and below.
[[nodiscard]] std::string trajectoriesCsv(const ExperimentResults &results);
/// "root,policy,seed,state,ending,reference,root_speedup,final_speedup,best,audited,valid,failed,wrappers,questions,dollars".
[[nodiscard]] std::string resultsCsv(const ExperimentResults &results);

} // namespace klineage::run
