// SPDX-License-Identifier: GPL-3.0-or-later
//
// The machine code of one candidate as a list of rows, with what is looked up in it. Pure, no Qt.
#pragma once

#include "core/base/result.h"
#include "core/trial/listing.h"
#include "ui/machine/code/opcodes.h"

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace klineage::ui {

/// The name of a kernel, a label, or an instruction.
struct CodeRow {
    enum class Kind { Kernel, Label, Instruction };

    Kind kind = Kind::Instruction;
    int line = 0;             ///< of the candidate's file, 1-based; 0: it comes from elsewhere
    std::int64_t samples = 0; ///< of the program counter
    std::map<std::string, std::int64_t> stalls; ///< as in ListedInstruction
    std::string text;                           ///< printable ASCII
    OpcodeClass opcode = OpcodeClass::Other;
};

/// How many instructions of each class there are. Counted in the text: a loop's count once, however often they run.
using InstructionMix = std::array<std::int64_t, opcodeClassCount>;

/// Immutable once it is made, so it may be read from any thread.
struct MachineCode {
    CodeForm form = CodeForm::Sass;
    std::string compiler; ///< "nvrtc 13.0"
    std::vector<CodeRow> rows;
    int instructions = 0;
    std::int64_t samples = 0;     ///< of all rows; 0: it was not sampled
    std::int64_t mostSamples = 0; ///< of one row
    InstructionMix mix{};
    std::vector<int> hottest; ///< rows with the most samples, most first; at most hottestCount
    std::unordered_map<int, std::vector<int>> rowsOfLine; ///< line of the source -> rows, ascending

    /// Of a line that has no instruction: nothing.
    [[nodiscard]] std::span<const int> rowsOf(int line) const;
};
using MachineCodePtr = std::shared_ptr<const MachineCode>;

inline constexpr std::size_t hottestCount = 10;

/// Consecutive instructions of a kernel stand under its name. InvalidInput with more than maxCodeRows of them.
[[nodiscard]] Result<MachineCode> makeMachineCode(CodeForm form, gate::Listing listing);

/// The reason why most warps waited there, and how many did; empty where none did. "selected" is no reason to wait.
[[nodiscard]] std::pair<std::string, std::int64_t> largestStall(const CodeRow &row);

/// Rows as text, a line each: line, samples, reason, instruction, in columns. Those beyond the end are left out.
[[nodiscard]] std::string rowsAsText(const MachineCode &code, std::span<const int> rows);

} // namespace klineage::ui
