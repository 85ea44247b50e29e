// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Internal to outlineSource(): the words of C-like device code.
namespace klineage::kernel {

struct CodeToken {
    enum class Kind { Word, Number, String, Sign };
    Kind kind = Kind::Sign;
    std::string_view text; ///< into the code that was scanned; of a string its quotes too
    int line = 1;

    [[nodiscard]] bool is(std::string_view other) const { return text == other; }
    [[nodiscard]] bool isWord() const { return kind == Kind::Word; }
};

/// `#define name body` without parameters.
struct CodeMacro {
    std::string_view name;
    std::vector<CodeToken> body;
    int line = 1;
    std::size_t begin = 0;  ///< of the directive in the code, bytes
    std::size_t end = 0;    ///< past its last character, the line break left out
    bool isGuarded = false; ///< `#ifndef name` stands right before it
};

struct CodeScan {
    std::vector<CodeToken> tokens; ///< without comments and directives, and without what `#if 0` leaves out
    std::vector<CodeMacro> macros;
    bool isCut = false; ///< there was more than the limit
};

inline constexpr std::size_t maxCodeTokens = 1'000'000;
inline constexpr std::size_t maxCodeMacros = 1'000;

/// One pass, linear in the code; unclosed comments and strings end with it. The code outlives the scan.
[[nodiscard]] CodeScan scanCode(std::string_view code);

} // namespace klineage::kernel
