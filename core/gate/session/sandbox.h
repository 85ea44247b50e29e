// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"
#include "core/process/childprocess.h"

#include <filesystem>

namespace klineage::gate {

/// $XDG_CACHE_HOME/klineage (or ~/.cache/klineage); created when missing. Empty when there is no home.
[[nodiscard]] std::filesystem::path cacheDirectory();

/// Bytes of memory of this machine.
[[nodiscard]] std::uint64_t physicalMemory();

/// Address space that compiling a candidate may take: of NVRTC's process, and of an OpenCL worker until it is sealed.
inline constexpr std::uint64_t compileMemoryBytes = std::uint64_t{6} << 30;

/// Limits, environment, reach and output caps of a worker, command and descriptors not yet set. scratch: a folder of its own, where
/// it works and keeps its temporary files, its home and its caches.
[[nodiscard]] process::ChildOptions workerSandbox(kernel::Surface surface,
                                                  const std::filesystem::path &scratch);
/// The same for the compiler process.
[[nodiscard]] process::ChildOptions compilerSandbox(const std::filesystem::path &scratch);

} // namespace klineage::gate
