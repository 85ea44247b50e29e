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

/// Memory of its own (RLIMIT_DATA) that compiling a candidate may take: in NVRTC's process, and in an OpenCL worker, to which what its
/// buffers need is added.
inline constexpr std::uint64_t compileMemoryBytes = std::uint64_t{6} << 30;

/// Where an OpenCL worker's compiler keeps what it built.
[[nodiscard]] std::filesystem::path programFolder(const std::filesystem::path &scratch);

/// Limits, environment, reach and output caps of a worker, command and descriptors not yet set. scratch: a folder of its own, where
/// it works and keeps its temporary files, its home and its caches.
[[nodiscard]] process::ChildOptions workerSandbox(kernel::DeviceKind device,
                                                  const std::filesystem::path &scratch);
/// The same for the compiler process.
[[nodiscard]] process::ChildOptions compilerSandbox(const std::filesystem::path &scratch);
/// The same for the process of a Python oracle. interpreter: the folders that python3 imports from.
[[nodiscard]] process::ChildOptions pythonSandbox(const std::vector<std::filesystem::path> &interpreter,
                                                  const std::filesystem::path &scratch);

} // namespace klineage::gate
