// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/deviceturn.h"
#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

/// Waits until no other gate of this machine is on the device. How long that takes counts for nothing in the trial. refusal: asked once, when
/// it has to wait; a verdict that it has ends the trial without a turn. Empty: nothing is asked. folder: empty: there are no turns.
[[nodiscard]] StageResult<void> awaitTurn(DeviceTurn &turn, const std::filesystem::path &folder,
                                          const std::function<std::optional<Verdict>()> &refusal,
                                          const std::stop_token &stop, const ProgressCallback &progress,
                                          Trial &trial);

/// What the compiler says of a candidate that it refuses; nothing: it compiles, or its own trial has to tell. Nothing of the candidate runs,
/// so that it may be asked while the device is another trial's: a compiler apart, or a worker on the host that is thrown away afterwards.
[[nodiscard]] std::optional<Verdict> compileRefusal(PreparedCandidate prepared, CompilerSession &compiler,
                                                    const std::string &target, const std::stop_token &stop);
[[nodiscard]] std::optional<Verdict> compileRefusal(const PreparedCandidate &prepared, WorkerSession &worker);

} // namespace klineage::gate
