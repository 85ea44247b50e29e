// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/candidate.h"
#include "core/process/isolation.h"

#include <string>
#include <vector>

namespace klineage::gate {

/// What a worker may reach of the machine: shared libraries, what the OpenCL and CUDA runtimes read, device files, and one folder
/// of its own to write to. Nobody's home, no accounts, no other process.
[[nodiscard]] process::Isolation workerIsolation(kernel::DeviceKind device,
                                                 const std::filesystem::path &scratch);

/// What the compiler process may reach: itself, NVRTC, and the headers of the CUDA Toolkit.
[[nodiscard]] process::Isolation compilerIsolation(const std::filesystem::path &scratch);

/// What the process of a Python oracle may reach: the interpreter's folders, shared libraries, and one folder of its own to write to. No
/// device but what gives zeros and random bytes, and no other program.
[[nodiscard]] process::Isolation pythonIsolation(const std::vector<std::filesystem::path> &interpreter,
                                                 const std::filesystem::path &scratch);

/// The log without what NVRTC quotes of files other than the candidate and the Toolkit's headers: for kernels without Landlock, where
/// nothing keeps it from reading them.
[[nodiscard]] std::string withoutForeignText(const std::string &log);

/// Names, or beginnings of names with "*", of the environment variables that both have from the gate's.
[[nodiscard]] std::vector<std::string> inheritedVariables();

} // namespace klineage::gate
