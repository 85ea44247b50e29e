// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/opencl/device.h"
#include "core/device/opencl/handle.h"

namespace klineage::gate::opencl {

/// Compiles source; output gets ok, log and compiler. Fails with InvalidInput when the source does not compile.
[[nodiscard]] Result<Program> buildProgram(const Device &device, cl_context context,
                                           const std::string &source,
                                           const std::map<std::string, std::int64_t> &tunables,
                                           CompileOutput &output);

/// Replaces the compiler's temporary file names by "<candidate>", so that "<candidate>:12:5: error" names the candidate's line.
[[nodiscard]] std::string cleanLog(const std::string &log);

} // namespace klineage::gate::opencl
