// SPDX-License-Identifier: GPL-3.0-or-later
//
// NVIDIA's compute-sanitizer looks at every access of a kernel: out of bounds, races on shared memory, reads of what was never written,
// misused barriers. It slows a kernel down by orders of magnitude, so it sees only the smallest case, when a trial asks for it.
#pragma once

#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

/// What one tool said.
struct SanitizerReport {
    std::string tool; ///< memcheck, racecheck, initcheck, synccheck
    int errors = 0;
    std::string first; ///< the first error and where it was; empty when there is none
};

/// Reads the tool's output; nothing when it has no summary (it was killed, or is another program). Pure.
[[nodiscard]] std::optional<SanitizerReport> readSanitizerLog(const std::string &tool,
                                                              const std::string &log);

/// The program, from the path or the CUDA toolkit; empty: not installed.
[[nodiscard]] std::string findSanitizer();

/// Runs the case with the fewest bytes once under each tool, in workers of their own (workerCommand: as for other workers, backend
/// included). Errors make the candidate unsafe; a tool that could not be run is said in the trial's evidence.
[[nodiscard]] StageResult<void> sanitize(PreparedCandidate &prepared,
                                         const std::vector<std::string> &workerCommand,
                                         const TrialContext &context, Trial &trial);

} // namespace klineage::gate
