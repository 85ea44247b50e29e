// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/step.h"

#include <algorithm>

namespace klineage::lineage {

namespace {

constexpr std::string_view branchPrefix = "trial:";

std::string predecessorOf(const Lineage &lineage, std::string_view stateId)
{
    for (std::size_t i = 1; i < lineage.states.size(); ++i) {
        if (lineage.states[i].id == stateId)
            return lineage.states[i - 1].id;
    }
    return {};
}

} // namespace

std::optional<RowRef> findRow(const Lineage &lineage, std::string_view id)
{
    if (const State *state = lineage.findState(id))
        return RowRef{state->id, state->title, predecessorOf(lineage, id), lineage.directory / state->file,
                      lineage.trialOf(*state)};
    for (const Attempt &attempt : lineage.attempts) {
        if (attempt.id == id)
            return RowRef{attempt.id, attempt.title, attempt.parent, lineage.directory / attempt.file,
                          lineage.trialOf(attempt)};
    }
    if (id.starts_with(branchPrefix)) {
        const std::string_view trial = id.substr(branchPrefix.size());
        for (const Branch &branch : lineage.branches) {
            if (branch.trial == trial)
                return RowRef{std::string(id), branch.file, branch.parent, lineage.directory / branch.file,
                              lineage.findTrial(branch.trial)};
        }
    }
    return {};
}

std::optional<Step> findStep(const Lineage &lineage, std::string_view row, std::string_view baseline)
{
    auto right = findRow(lineage, row);
    if (!right)
        return {};
    Step step;
    const std::string left = baseline.empty() ? right->parent : std::string(baseline);
    if (!left.empty() && left != right->id)
        step.left = findRow(lineage, left);
    step.right = std::move(*right);
    return step;
}

} // namespace klineage::lineage
