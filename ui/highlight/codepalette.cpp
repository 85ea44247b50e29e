// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/codepalette.h"

#include "ui/style/theme.h"

namespace klineage::ui {

namespace {

// In the order of TokenStyle. Contrast is 4.5:1 or more to all that lies behind code: lines, words, matches, selection.
constexpr std::array<QRgb, tokenStyleCount> darkTokens{
    0xd7dae0, // Text
    0x98baff, // Keyword
    0xd3a9f0, // Control
    0x98baff, // Type
    0xdcabf2, // Qualifier
    0x7fd1c7, // Builtin
    0xe3d18a, // Function
    0x9fd3f5, // Variable
    0xe6a9c6, // Preprocessor
    0xf4aa7e, // Number
    0xb5d58a, // String
    0xf2c38f, // Escape
    0xadb4c0, // Comment
    0xbfc5d0, // Operator
    0xe3d18a, // Label
    0x9fd3f5, // Key
    0xff9a9a, // Error
};
constexpr std::array<QRgb, tokenStyleCount> lightTokens{
    0x1f2328, // Text
    0x1c4bd0, // Keyword
    0x8226b8, // Control
    0x1c4bd0, // Type
    0x7a2aa8, // Qualifier
    0x0a625b, // Builtin
    0x6a5200, // Function
    0x0a5c8a, // Variable
    0xa01d62, // Preprocessor
    0x983b08, // Number
    0x2a6217, // String
    0x844700, // Escape
    0x555d69, // Comment
    0x3d444d, // Operator
    0x6a5200, // Label
    0x0a5c8a, // Key
    0xa9231c, // Error
};

CodePalette fromTokens(const std::array<QRgb, tokenStyleCount> &rgb)
{
    CodePalette palette;
    for (std::size_t i = 0; i < rgb.size(); ++i)
        palette.tokens[i] = QColor::fromRgb(rgb[i]);
    palette.text = palette.token(TokenStyle::Text);
    return palette;
}

} // namespace

CodePalette CodePalette::from(const Theme &theme)
{
    CodePalette code = fromTokens(theme.isDark ? darkTokens : lightTokens);
    code.background = theme.panel;
    code.text = theme.text;
    code.muted = theme.dim;
    code.fold = theme.diffFold;
    code.separator = theme.border;
    code.currentLine = QColor(theme.isDark ? 255 : 0, theme.isDark ? 255 : 0, theme.isDark ? 255 : 0,
                              theme.isDark ? 20 : 12);
    code.filler = theme.diffFiller;
    code.fillerLine = blend(theme.text, theme.diffFiller, theme.isDark ? 0.06 : 0.07);
    code.removed = theme.diffRemove;
    code.added = theme.diffAdd;
    code.moved = theme.diffMoved;
    code.removedWord = theme.diffRemoveWord;
    code.addedWord = theme.diffAddWord;
    code.removedWordFrame = blend(theme.bad, theme.diffRemoveWord, 0.3);
    code.addedWordFrame = blend(theme.good, theme.diffAddWord, 0.3);
    code.removedBar = theme.bad;
    code.addedBar = theme.good;
    code.changedBar = theme.warn;
    code.movedBar = QColor::fromRgb(theme.isDark ? 0x9a98f5 : 0x5a57c9);
    code.heatEdge = QColor::fromRgb(theme.isDark ? 0xf0834a : 0xc8501c);
    code.heat = blend(code.heatEdge, theme.panel, theme.isDark ? 0.4 : 0.36);
    code.match = blend(theme.warn, theme.panel, 0.22);
    code.matchFrame = theme.warn;
    code.selection = blend(theme.accent, theme.panel, 0.2);
    code.bracket = blend(theme.accent, theme.panel, 0.19);
    code.accent = theme.accent;
    return code;
}

} // namespace klineage::ui
