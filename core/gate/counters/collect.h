// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/correctness.h"

namespace klineage::gate::counters {

/// Adds hardware counters, PC samples and their hotspots of the timed case to a trial whose candidate is correct. Both are read in
/// workers of their own, started for this after the last timed run, so that the profiler never is in a process that times. The
/// verdict stays as it is: what could not be read is told in its evidence, as "counters" and "hotspots".
void collect(const std::vector<std::string> &workerCommand, const PreparedCandidate &prepared,
             const CaseInstancePtr &timed, const TrialContext &context, Trial &trial);

} // namespace klineage::gate::counters
