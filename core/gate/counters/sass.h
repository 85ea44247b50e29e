// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <filesystem>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate::counters {

/// One machine instruction of a kernel.
struct SassLine {
    std::string kernel;
    std::uint64_t offset = 0; ///< bytes from the kernel's beginning
    std::string text;         ///< "@!P0 BRA `(.L_x_1)"
    int line = 0; ///< of the candidate's file; 0: it comes from elsewhere, or the tool does not tell
};

/// Reads what `nvdisasm -g -c` or `cuobjdump -sass` prints. file: name of the candidate's file in its line table.
[[nodiscard]] std::vector<SassLine> parseSass(std::string_view listing, const std::string &file);

/// nvdisasm, or else cuobjdump, on PATH or in the toolkit's folder. Unavailable, with how to get them, when there is neither.
[[nodiscard]] Result<std::filesystem::path> findDisassembler();

/// Disassembles a cubin in a child process with limits on time, memory and output. Timeout and Protocol are the tool's failures.
[[nodiscard]] Result<std::vector<SassLine>> disassemble(std::span<const std::byte> cubin,
                                                        const std::string &file, double limitSeconds);

} // namespace klineage::gate::counters
