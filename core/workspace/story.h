// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

namespace klineage {

/// The lineage that a first look is worth most, by what is recorded: with a correct K*, then the most states with a correct trial, then
/// the most steps with a card of the workspace, then the fewest latency of K* for that of K0 (each trial by itself, not paired), then
/// the first by key. nullptr: there is no lineage with a state.
[[nodiscard]] const lineage::Lineage *bestStory(const Workspace &workspace);

/// The state that one looks at first: K*, or, where its step has no card, the one whose step has a card and gained most against its
/// parent (paired, in one trial). Empty: the lineage has no state.
[[nodiscard]] std::string firstState(const Workspace &workspace, const lineage::Lineage &lineage);

} // namespace klineage
