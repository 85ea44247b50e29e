// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/outline/codescan.h"

#include <functional>
#include <span>
#include <string>

/// Internal to deviceSourceOf(): what stands at the scope of namespaces.
namespace klineage::kernel {

/// A function, a type, a variable, or anything else that ends with ';' or '}'. Indices are into the scan's tokens.
struct CodeDeclaration {
    std::size_t begin = 0;
    std::size_t body = 0; ///< of the brace that opens a function's body; end: there is none
    std::size_t end = 0;  ///< past its last token
    bool isFunction = false;
    bool isInC = false; ///< within `extern "C" { … }`
};

/// Goes into namespaces and linkage blocks. Linear.
void forEachDeclaration(std::span<const CodeToken> tokens,
                        const std::function<void(const CodeDeclaration &)> &visit);

/// Past the sign that closes the one at i; the number of tokens when none does.
[[nodiscard]] std::size_t pastClosingSign(std::span<const CodeToken> tokens, std::size_t i);

/// What stands between the sign at i, which opens, and the one that closes it, or the end.
[[nodiscard]] std::span<const CodeToken> insideSigns(std::span<const CodeToken> tokens, std::size_t i);

/// Whether a word is there, or a macro whose body has it.
[[nodiscard]] bool hasWord(std::span<const CodeToken> tokens, std::string_view word, const CodeScan &scan);

/// The code from the first token to the end of the last, each run of blanks one.
[[nodiscard]] std::string textBetween(std::span<const CodeToken> tokens);

/// Split at commas outside of parentheses, brackets and braces.
[[nodiscard]] std::vector<std::span<const CodeToken>> splitAtCommas(std::span<const CodeToken> tokens);

} // namespace klineage::kernel
