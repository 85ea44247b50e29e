// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/largeststeps.h"

#include <algorithm>
#include <utility>

namespace klineage::lineage {

std::vector<LargeStep> largestSteps(const Lineage &lineage)
{
    std::vector<LargeStep> steps;
    for (const State &state : lineage.states) {
        const Transition *step = lineage.transitionTo(state.id);
        const gate::Trial *trial = step ? lineage.trialOf(state) : nullptr;
        const gate::Comparison *parent = trial ? trial->comparison("parent") : nullptr;
        if (parent && parent->speedup.value > 0)
            steps.push_back({step->from, state.id, parent->speedup, trial->environment.device});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const LargeStep &a, const LargeStep &b) {
        return a.speedup.value > b.speedup.value;
    });
    return steps;
}

std::vector<LineageStep> largestSteps(const std::vector<Lineage> &lineages)
{
    std::vector<LineageStep> steps;
    for (const Lineage &lineage : lineages) {
        for (LargeStep &step : largestSteps(lineage))
            steps.push_back({&lineage, std::move(step)});
    }
    std::stable_sort(steps.begin(), steps.end(), [](const LineageStep &a, const LineageStep &b) {
        return a.step.speedup.value > b.step.speedup.value;
    });
    return steps;
}

const LargeStep *largestStepAfter(const std::vector<LargeStep> &steps, std::string_view row)
{
    if (steps.empty())
        return nullptr;
    const auto here =
        std::find_if(steps.begin(), steps.end(), [row](const LargeStep &step) { return step.to == row; });
    return here == steps.end() || here + 1 == steps.end() ? &steps.front() : &*(here + 1);
}

} // namespace klineage::lineage
