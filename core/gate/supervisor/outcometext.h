// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/trialcontext.h"

#include <string>

namespace klineage::gate {

// What a trial's end is told as. cases: of the workload.

/// "Correct on 5 cases with 7 seeds; 12.3 ms; 1.52× the speed of its parent (gain)."
[[nodiscard]] std::string successMessage(const Trial &trial, std::size_t cases);

/// Adds what was shown of a candidate that was right, and then not timed in the time that the trial had: no loop that never ends.
void sayWhatWasShown(Trial &trial, std::size_t cases);

/// target: what the candidate was compiled for in vain.
[[nodiscard]] Verdict unavailableVerdict(const Error &error, const PreparedCandidate &prepared,
                                         const std::string &target);

} // namespace klineage::gate
