// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diff/tokens.h"

#include <algorithm>

namespace klineage::diff {

namespace {

TokenKind kindOf(char c)
{
    if (c == ' ' || c == '\t' || c == '\r')
        return TokenKind::Blank;
    const bool word =
        (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c < 0;
    return word ? TokenKind::Word : TokenKind::Punctuation;
}

std::uint32_t hashOf(std::string_view text)
{
    std::uint32_t hash = 2166136261u; // FNV-1a
    for (const char c : text)
        hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
    return hash;
}

} // namespace

std::vector<Token> tokenize(std::string_view line)
{
    std::vector<Token> tokens;
    tokens.reserve(line.size() / 3 + 1);
    std::size_t at = 0;
    while (at < line.size()) {
        const TokenKind kind = kindOf(line[at]);
        std::size_t end = at + 1;
        while (kind != TokenKind::Punctuation && end < line.size() && kindOf(line[end]) == kind)
            ++end;
        tokens.push_back({static_cast<std::int32_t>(at), static_cast<std::int32_t>(end - at), kind,
                          hashOf(line.substr(at, end - at))});
        at = end;
    }
    return tokens;
}

int tokenWeight(const Token &token)
{
    switch (token.kind) {
    case TokenKind::Blank:
        return 0;
    case TokenKind::Punctuation:
        return 1;
    case TokenKind::Word:
        break;
    }
    return 2 + std::min(token.length, 8);
}

} // namespace klineage::diff
