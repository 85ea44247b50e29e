// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"
#include "core/gate/session/workersession.h"

#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

/// The CUDA release that an assembler is of: "12.8".
[[nodiscard]] Result<std::string> assemblerRelease(const std::string &program);

/// Makes a cubin of PTX in a confined process that lasts for it, with the line table and what ptxas says of registers and spills. PTX that
/// it refuses is a value (ok false). command: the program, and options beside those of every candidate. target: "sm_90a".
[[nodiscard]] WorkerResult<CompileOutput> assemble(const std::vector<std::string> &command,
                                                   const std::string &ptx, const std::string &target,
                                                   process::Deadline deadline, const std::stop_token &stop);

} // namespace klineage::gate
