// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/lineage/lineage.h"

#include <algorithm>

namespace klineage::lineage {

namespace {

template <typename T, typename Matches>
const T *findIn(const std::vector<T> &items, Matches &&matches)
{
    const auto it = std::find_if(items.begin(), items.end(), matches);
    return it == items.end() ? nullptr : &*it;
}

} // namespace

const State *Lineage::findState(std::string_view id) const
{
    return findIn(states, [&](const State &state) { return state.id == id; });
}

const gate::Trial *Lineage::findTrial(std::string_view trialId) const
{
    if (trialId.empty())
        return nullptr;
    return findIn(trials, [&](const gate::Trial &trial) { return trial.id == trialId; });
}

const gate::Trial *Lineage::trialOf(const State &state) const
{
    return findTrial(state.trial);
}

const gate::Trial *Lineage::trialOf(const Attempt &attempt) const
{
    return findTrial(attempt.trial);
}

const Transition *Lineage::transitionTo(std::string_view stateId) const
{
    return findIn(transitions, [&](const Transition &transition) { return transition.to == stateId; });
}

} // namespace klineage::lineage
