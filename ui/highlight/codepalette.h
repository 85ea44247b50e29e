// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/tokenstyle.h"

#include <QColor>

#include <array>

class QPalette;

namespace klineage::ui {

/// The colours of code, diffs and gutters, light or dark.
struct CodePalette {
    QColor background;
    QColor text;
    QColor muted;        ///< line numbers, signs, hints
    QColor fold;         ///< background of folded runs and headers
    QColor separator;
    QColor currentLine;  ///< translucent
    QColor filler;       ///< hatching
    QColor removed;      ///< line backgrounds …
    QColor added;
    QColor moved;
    QColor removedWord;  ///< … and the words in them
    QColor addedWord;
    QColor removedBar;   ///< gutter and overview
    QColor addedBar;
    QColor changedBar;
    QColor movedBar;
    QColor match;        ///< search matches
    QColor currentMatch;
    QColor bracket;
    std::array<QColor, tokenStyleCount> tokens;

    [[nodiscard]] QColor token(TokenStyle style) const { return tokens[static_cast<std::size_t>(style)]; }
    [[nodiscard]] static CodePalette from(const QPalette &palette);
};

/// Comments are set in italics, nothing else is.
[[nodiscard]] inline bool isItalic(TokenStyle style)
{
    return style == TokenStyle::Comment;
}

} // namespace klineage::ui
