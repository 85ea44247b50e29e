// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QtGlobal>

#include <cstddef>
#include <vector>

namespace klineage::ui {

/// What a stretch of code is. What it looks like is the theme's business (codepalette.h).
enum class TokenStyle : quint8 {
    Text,
    Keyword,
    Control,
    Type,
    Qualifier,
    Builtin,
    Function,
    Variable,
    Preprocessor,
    Number,
    String,
    Escape,
    Comment,
    Operator,
    Label,
    Key,
    Error,
};
inline constexpr std::size_t tokenStyleCount = static_cast<std::size_t>(TokenStyle::Error) + 1;

/// A stretch of a line, in UTF-16 units.
struct TokenRun {
    int begin = 0;
    int length = 0;
    TokenStyle style = TokenStyle::Text;

    friend bool operator==(const TokenRun &, const TokenRun &) = default;
};

/// The runs of one line, ascending, without plain text.
using LineRuns = std::vector<TokenRun>;

} // namespace klineage::ui
