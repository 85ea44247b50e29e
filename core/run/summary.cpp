// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/summary.h"

#include "core/base/numbertext.h"

#include <algorithm>

namespace klineage::run {

namespace {

void countOutcome(const StepRecord &step, Summary &summary)
{
    summary.valid += step.outcome == "valid" && !step.exchanges.empty();
    summary.failed += step.outcome == "failed";
    summary.wrappers += step.outcome == "wrapper";
    summary.questions += !step.exchanges.empty();
    if (step.action == "load")
        summary.loadDollars += step.dollars;
}

/// Of an audit, whose parent is the root.
gate::Interval gainOf(const RunRecord &run, const StepRecord &audit)
{
    const auto trial = std::find_if(run.trials.begin(), run.trials.end(),
                                    [&](const gate::Trial &one) { return one.id == audit.trial; });
    const gate::Comparison *paired =
        audit.outcome == "audited" && trial != run.trials.end() ? trial->comparison("parent") : nullptr;
    return paired ? paired->speedup : gate::Interval{};
}

} // namespace

Reference referenceOf(const gate::Trial &root)
{
    if (const gate::Comparison *fastest = root.referenceComparison())
        return {fastest->against, fastest->otherNs, {}};
    return {"root", root.latencyNs.value, root.candidate};
}

double speedupOf(const gate::Trial &trial, const Reference &reference)
{
    if (trial.verdict.status != gate::VerdictStatus::Correct || trial.latencyNs.value <= 0)
        return 0;
    const bool isParent = !reference.candidate.empty() && trial.parent == reference.candidate;
    if (const gate::Comparison *paired = trial.comparison(isParent ? "parent" : reference.name))
        return std::max(0.0, paired->speedup.value);
    return reference.nanoseconds / trial.latencyNs.value;
}

Summary summarize(const RunRecord &run)
{
    Summary summary;
    if (!run.trials.empty()) {
        summary.reference = referenceOf(run.trials.front());
        summary.rootSpeedup = speedupOf(run.trials.front(), summary.reference);
    }
    const StepRecord *final = nullptr;
    for (const StepRecord &step : run.steps) {
        countOutcome(step, summary);
        summary.dollars = step.totalDollars;
        summary.best = std::max(summary.best, step.best);
        summary.trajectory.push_back({step.number, step.totalDollars, step.best, step.speedup,
                                      summary.questions, step.action, step.outcome});
        const bool better = step.outcome == "valid" && (!final || step.speedup > final->speedup);
        if (!summary.audited && better)
            final = &step;
        if (step.outcome == "audited") {
            final = &step;
            summary.audited = true;
        }
    }
    if (final) {
        summary.finalSpeedup = final->speedup;
        summary.candidate = final->candidate;
        summary.trial = final->trial;
        summary.improved = !run.trials.empty() && final->candidate != run.trials.front().candidate;
        summary.gain = gainOf(run, *final);
    }
    return summary;
}

std::optional<Reached> reachedAt(const Summary &summary, double gain)
{
    for (const TrajectoryPoint &point : summary.trajectory) {
        if (summary.rootSpeedup > 0 && point.best / summary.rootSpeedup >= gain)
            return Reached{point.questions, point.dollars};
    }
    return std::nullopt;
}

std::string measuredText(double speedup)
{
    return speedup > 0 ? shortestText(speedup) : std::string();
}

std::string trajectoryCsv(const Summary &summary)
{
    std::string text = "step,dollars,best,speedup,action,outcome\n";
    for (const TrajectoryPoint &point : summary.trajectory)
        text += std::to_string(point.step) + ',' + shortestText(point.dollars) + ','
                + measuredText(point.best) + ',' + measuredText(point.speedup) + ',' + point.action + ','
                + point.outcome + '\n';
    return text;
}

} // namespace klineage::run
