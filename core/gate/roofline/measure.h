// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/compilersession.h"
#include "core/trial/analysis/ceilings.h"

#include <functional>

namespace klineage::gate {

/// Measures the ceilings of the session's device with the built-in kernels: a second or two. The session must be one in which no
/// candidate ran, because its clock is believed. CUDA kernels come from the compiler. What cannot be measured alone (a rate that the
/// device does not offer) is left out; Errors are those of the machine, and Cancelled.
[[nodiscard]] Result<Ceilings> measureCeilings(WorkerSession &session, kernel::DeviceKind device,
                                               CompilerSession &compiler, const std::stop_token &stop,
                                               const std::function<void(const std::string &)> &progress);

} // namespace klineage::gate
