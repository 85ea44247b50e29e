// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

namespace klineage::gate::opencl {

/// Words that mean something else in a candidate: inline assembly, and attributes that place code or start it when it is loaded.
inline constexpr const char *refusedWords[] = {
    "asm",   "__asm",     "__asm__", "constructor", "__constructor__", "destructor", "__destructor__",
    "ifunc", "__ifunc__", "section", "__section__", "naked",           "__naked__",
};

/// Questions about files.
inline constexpr const char *refusedQuestions[] = {"__has_include", "__has_include_next", "__has_embed"};

} // namespace klineage::gate::opencl
