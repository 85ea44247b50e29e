// SPDX-License-Identifier: GPL-3.0-or-later
//
// What an instruction is, by its text alone: for counting and for highlighting. Pure, no Qt.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

namespace klineage::ui {

/// SASS is what the device executes; PTX is what the compiler makes it from.
enum class CodeForm { Sass, Ptx };

/// In the order in which an instruction mix lists them.
enum class OpcodeClass {
    WarpgroupProduct,
    WarpProduct,
    TensorCopy,
    AsyncCopy,
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    SharedStore,
    LocalMemory,
    Constant,
    Atomic,
    Barrier,
    SpecialFunction,
    Fp32,
    Fp16,
    Fp64,
    IntegerMultiply,
    Integer,
    Convert,
    Move,
    Shuffle,
    Control,
    Other,
};
inline constexpr std::size_t opcodeClassCount = static_cast<std::size_t>(OpcodeClass::Other) + 1;

/// One row an OpcodeClass, in its order.
struct OpcodeClassRow {
    const char *name;     ///< "Global load": English, for tr()
    const char *examples; ///< "LDG · ld.global": SASS · PTX
};
[[nodiscard]] std::span<const OpcodeClassRow, opcodeClassCount> opcodeClasses();

/// What a stretch of an instruction is. What is none of these is an operand.
enum class CodeToken { Predicate, Opcode, Number, Label };
struct CodeSpan {
    std::size_t begin = 0; ///< bytes
    std::size_t length = 0;
    CodeToken token = CodeToken::Opcode;

    friend bool operator==(const CodeSpan &, const CodeSpan &) = default;
};

/// Ascending, from one line of SASS or PTX: "@!P0 BRA `(.L_x_1)", "@%p1 bra $L__BB0_2;", "$L__BB0_2:".
[[nodiscard]] std::vector<CodeSpan> codeSpans(std::string_view text);

/// "LDG.E.128" of "@P0 LDG.E.128 R4, [R2.64]"; empty for a label.
[[nodiscard]] std::string_view opcodeOf(std::string_view text);
/// By the opcode with its modifiers, as opcodeOf() gives it.
[[nodiscard]] OpcodeClass classOf(CodeForm form, std::string_view opcode);

} // namespace klineage::ui
