// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"

namespace klineage::ui {

/// A workspace made in memory for tests; its numbers measure nothing.
/// toy/pocl: K00 … K03, R01a (correct, no gain) and R02a (wrong) tried from K01 and K02, a branch of K03. Latencies 800, 400, 200,
/// 100 µs, so each step is 2× and K03 is 8× of K00 and 1.25× of the reference "openblas". toy/sm90: K00, K01, not gated.
/// Cards: alpha (to review), beta (approved), gamma (rejected), delta (admitted, to review).
[[nodiscard]] Workspace sampleWorkspace();

/// A trial that is correct, with the latency and speedups to the parent and to the reference (0: left out).
[[nodiscard]] gate::Trial sampleTrial(const std::string &id, double latencyNs, double toParent,
                                      gate::Change change, double toReference);

/// sampleWorkspace()'s first lineage with one more branch tried from a state.
void addBranch(lineage::Lineage &lineage, const std::string &trialId, const std::string &parent);

} // namespace klineage::ui
