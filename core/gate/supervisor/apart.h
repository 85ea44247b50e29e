// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/correctness.h"

#include <functional>

namespace klineage::gate {

/// A worker that has run nothing yet, in the place of the one before.
using FreshWorker = std::function<StageResult<WorkerSession *>()>;

/// On a processor the sides of a comparison share a process, whose memory either can write, and a parent can see that it is not alone. So a large
/// gain has to show, by half of it at least, where the candidate and its parent each have a process of their own, one after the other; else it is
/// undecided, and the trial's evidence says why ("apart"). Smaller ones are within what a processor's speed changes by from process to process.
[[nodiscard]] StageResult<void> tellApart(PreparedCandidate &candidate, const CorrectnessResult &correct,
                                          CompilerSession &compiler, const TrialContext &context,
                                          const FreshWorker &fresh, Trial &trial);

} // namespace klineage::gate
