// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/compilers.h"

namespace klineage::gate {

/// The worker process: owns the device, executes what the supervisor asks for over the inherited socket, judges nothing.
/// Returns the process's exit code when the supervisor closes the socket or anything is wrong with it.
[[nodiscard]] int runWorker(kernel::DeviceKind device);

/// The compiler process: turns untrusted source into binaries over the same kind of socket, without a device.
[[nodiscard]] int runCompiler(std::span<const Compiler> known = compilers());

} // namespace klineage::gate
