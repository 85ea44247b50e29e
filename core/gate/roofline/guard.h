// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/trialcontext.h"
#include "core/trial/analysis/ceilingstore.h"
#include "core/trial/analysis/floor.h"

namespace klineage::gate {

/// What one run of the timed case asks of a device, when `sets` sets of buffers take turns.
[[nodiscard]] Demand demandOf(const workload::Workload &workload, std::size_t sets);

/// Verdict suspect, reason "roofline".
[[nodiscard]] Verdict rooflineVerdict(double ns, const Demand &demand, const Floor &floor,
                                      const std::string &caseName);

/// Holds measured trials against what their device can do. The ceilings are measured when a device is met for the first time, in a
/// worker of their own, kept by fingerprint, and measured once more before anything is called suspect: they are maxima, and a busy
/// machine shows too low ones.
class RooflineGuard
{
public:
    /// workerCommand: before "--backend NAME". directory: of the store; empty: nothing is measured and there is no floor.
    RooflineGuard(std::vector<std::string> workerCommand, std::filesystem::path directory);

    /// The kept ceilings of the device, or new ones; `again` measures in any case and keeps the larger figures.
    [[nodiscard]] Result<Ceilings> ceilings(kernel::Surface surface, const Environment &environment,
                                            bool again, CompilerSession &compiler,
                                            const std::stop_token &stop, const ProgressCallback &progress);

    /// For a trial whose latency is known. Adds the ceilings to its environment's facts ("roofline_…") and a word to its evidence.
    /// Ends in a verdict when the latency is below the floor, in an Error only when the trial was cancelled.
    [[nodiscard]] StageResult<void> judge(const GateJob &job, CompilerSession &compiler,
                                          const std::stop_token &stop, const ProgressCallback &progress,
                                          Trial &trial);

private:
    std::vector<std::string> m_workerCommand;
    CeilingStore m_store;
    std::map<Fingerprint, Ceilings> m_known;
    std::map<Fingerprint, Error> m_failed; ///< not tried again while this lives
};

} // namespace klineage::gate
