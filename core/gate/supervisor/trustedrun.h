// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/compilersession.h"
#include "core/gate/session/programbuilder.h"

namespace klineage::gate {

/// Compiles and runs a small kernel of the gate's own in a worker, and compares what it computes. What fails here fails because of the
/// machine: a compiler, linker or driver that does not work in the worker's environment would otherwise be told as a candidate's
/// crash. On success the worker is as it was. On failure it is discarded, and the failure is Unavailable, with what went wrong and in
/// its detail what the device's tools said; only Cancelled and Killed are told as themselves.
[[nodiscard]] WorkerResult<void> runTrustedKernel(WorkerSession &session, CompilerSession &compiler,
                                                  ProgramBuilder &builder, kernel::DeviceKind device,
                                                  const std::stop_token &stop);

} // namespace klineage::gate
