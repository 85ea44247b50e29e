// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace klineage::diff {

enum class TokenKind : std::uint8_t { Word, Blank, Punctuation };

/// A token of a line of code. Words are runs of letters, digits, '_' and bytes outside ASCII (so that no UTF-8 sequence is ever
/// split), blanks are runs, punctuation stands alone.
struct Token {
    std::int32_t begin = 0; ///< bytes
    std::int32_t length = 0;
    TokenKind kind = TokenKind::Word;
    std::uint32_t hash = 0;
};

[[nodiscard]] std::vector<Token> tokenize(std::string_view line);

/// How much a token says about the identity of a line.
[[nodiscard]] int tokenWeight(const Token &token);

} // namespace klineage::diff
