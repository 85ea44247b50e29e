// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/highlight/tokenstyle.h"

#include <QColor>

#include <array>

namespace klineage::ui {

struct Theme;

/// The colours of code, diffs and gutters, light or dark.
struct CodePalette {
    QColor background;
    QColor text;
    QColor muted; ///< line numbers, signs, hints
    QColor fold;  ///< background of folded runs and headers
    QColor separator;
    QColor currentLine; ///< laid over the line's colour
    QColor filler;      ///< where one side has no line …
    QColor fillerLine;  ///< … and its hatching
    QColor removed;     ///< line backgrounds …
    QColor added;
    QColor moved;
    QColor removedWord; ///< … and the words in them
    QColor addedWord;
    QColor removedWordFrame; ///< around them: what is behind text has to be pale
    QColor addedWordFrame;
    QColor removedBar; ///< gutter and overview
    QColor addedBar;
    QColor changedBar;
    QColor movedBar;
    QColor heat;       ///< bars of stall samples, behind their numbers …
    QColor heatEdge;   ///< … and where they begin
    QColor match;      ///< search matches
    QColor matchFrame; ///< around the current one
    QColor selection;  ///< selected text
    QColor bracket;    ///< a pair of brackets
    QColor accent;
    std::array<QColor, tokenStyleCount> tokens;

    [[nodiscard]] QColor token(TokenStyle style) const { return tokens[static_cast<std::size_t>(style)]; }
    [[nodiscard]] static CodePalette from(const Theme &theme);
};

/// Comments are set in italics, nothing else is.
[[nodiscard]] inline bool isItalic(TokenStyle style)
{
    return style == TokenStyle::Comment;
}

} // namespace klineage::ui
