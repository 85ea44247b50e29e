// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/experiment/results.h"

#include "core/base/numbertext.h"

#include <cmath>

namespace klineage::run {

namespace {

CellResult readCell(const Experiment &experiment, const Cell &cell)
{
    CellResult result;
    result.cell = cell;
    const std::filesystem::path directory = experiment.directory / "runs" / cell.runId;
    std::error_code ignored;
    if (!std::filesystem::exists(directory, ignored)) {
        result.state = "missing";
        return result;
    }
    const Result<RunRecord> run = readRun(directory);
    if (!run) {
        result.state = "unreadable";
        result.ending.reason = run.error().message;
        return result;
    }
    result.state = run->state;
    result.ending = run->ending;
    result.summary = summarize(*run);
    return result;
}

/// Of the cells of a policy; on all roots when root is empty.
PolicyResult averageOf(const std::vector<CellResult> &cells, const std::string &policy,
                       const std::string &root)
{
    PolicyResult result;
    result.policy = policy;
    result.root = root;
    double logarithms = 0;
    for (const CellResult &cell : cells) {
        if (cell.cell.policy != policy || (!root.empty() && cell.cell.root != root))
            continue;
        result.dollars += cell.summary.dollars;
        if (!cell.isOver()) {
            ++result.unfinished;
        } else if (cell.isSuccess()) {
            ++result.successes;
            logarithms += std::log(cell.summary.finalSpeedup);
        } else {
            ++result.failures;
        }
    }
    if (result.successes > 0)
        result.geometricMean = std::exp(logarithms / result.successes);
    return result;
}

std::string cellText(const Cell &cell)
{
    return cell.root + ',' + cell.policy + ',' + std::to_string(cell.seed);
}

} // namespace

bool CellResult::isSuccess() const
{
    return isOver() && summary.improved && summary.finalSpeedup > summary.rootSpeedup;
}

ExperimentResults readResults(const Experiment &experiment)
{
    ExperimentResults results;
    for (const Cell &cell : cellsOf(experiment))
        results.cells.push_back(readCell(experiment, cell));
    for (const std::string &root : experiment.roots) {
        for (const std::string &policy : experiment.policies)
            results.policies.push_back(averageOf(results.cells, policy, root));
    }
    for (const std::string &policy : experiment.policies)
        results.policies.push_back(averageOf(results.cells, policy, {}));
    return results;
}

std::string trajectoriesCsv(const ExperimentResults &results)
{
    std::string text = "root,policy,seed,step,dollars,best,speedup,action,outcome\n";
    for (const CellResult &cell : results.cells) {
        for (const TrajectoryPoint &point : cell.summary.trajectory)
            text += cellText(cell.cell) + ',' + std::to_string(point.step) + ',' + shortestText(point.dollars)
                    + ',' + measuredText(point.best) + ',' + measuredText(point.speedup) + ',' + point.action
                    + ',' + point.outcome + '\n';
    }
    return text;
}

std::string resultsCsv(const ExperimentResults &results)
{
    std::string text =
        "root,policy,seed,state,ending,reference,root_speedup,final_speedup,best,audited,valid,"
        "failed,wrappers,questions,dollars\n";
    for (const CellResult &cell : results.cells) {
        const Summary &s = cell.summary;
        text += cellText(cell.cell) + ',' + cell.state + ',' + cell.ending.code + ',' + s.reference.name + ','
                + measuredText(s.rootSpeedup) + ',' + measuredText(s.finalSpeedup) + ','
                + measuredText(s.best) + ',' + (s.audited ? "yes" : "no") + ',' + std::to_string(s.valid)
                + ',' + std::to_string(s.failed) + ',' + std::to_string(s.wrappers) + ','
                + std::to_string(s.questions) + ',' + shortestText(s.dollars) + '\n';
    }
    return text;
}

} // namespace klineage::run
