// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/workspace/story.h"

#include <algorithm>
#include <tuple>

namespace klineage {

namespace {

const gate::Trial *correctTrial(const lineage::Lineage &lineage, const lineage::State &state)
{
    const gate::Trial *trial = lineage.trialOf(state);
    return trial && trial->verdict.status == gate::VerdictStatus::Correct ? trial : nullptr;
}

/// Greater is better.
std::tuple<bool, long, long, double> worthOf(const Workspace &workspace, const lineage::Lineage &lineage)
{
    const gate::Trial *first = correctTrial(lineage, lineage.states.front());
    const gate::Trial *last = correctTrial(lineage, lineage.states.back());
    const auto gated =
        std::count_if(lineage.states.begin(), lineage.states.end(),
                      [&](const lineage::State &state) { return correctTrial(lineage, state) != nullptr; });
    const auto told = std::count_if(
        lineage.transitions.begin(), lineage.transitions.end(),
        [&](const lineage::Transition &step) { return !step.card.empty() && workspace.findCard(step.card); });
    const double gained = first && last && last->latencyNs.value > 0 && first->latencyNs.value > 0
                              ? first->latencyNs.value / last->latencyNs.value
                              : 0;
    return {last != nullptr, gated, told, gained};
}

} // namespace

const lineage::Lineage *bestStory(const Workspace &workspace)
{
    const lineage::Lineage *best = nullptr;
    for (const lineage::Lineage &lineage : workspace.lineages) {
        if (!lineage.states.empty() && (!best || worthOf(workspace, lineage) > worthOf(workspace, *best)))
            best = &lineage;
    }
    return best;
}

std::string firstState(const Workspace &workspace, const lineage::Lineage &lineage)
{
    if (lineage.states.empty())
        return {};
    const auto hasCard = [&workspace](const lineage::Transition *step) {
        return step && !step->card.empty() && workspace.findCard(step->card);
    };
    std::string chosen = lineage.states.back().id;
    if (hasCard(lineage.transitionTo(chosen)))
        return chosen;
    double most = 0;
    for (const lineage::State &state : lineage.states) {
        const gate::Trial *trial = correctTrial(lineage, state);
        const gate::Comparison *step = trial ? trial->comparison("parent") : nullptr;
        if (!step || !hasCard(lineage.transitionTo(state.id)) || step->speedup.value <= most)
            continue;
        most = step->speedup.value;
        chosen = state.id;
    }
    return chosen;
}

} // namespace klineage
