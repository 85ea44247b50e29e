// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/codepalette.h"

#include "ui/style/theme.h"

namespace klineage::ui {

namespace {

// In the order of TokenStyle. Contrast to the background, and to the added and removed line colours, is 4.5:1 or more.
constexpr std::array<QRgb, tokenStyleCount> darkTokens{
    0xd7dae0, // Text
    0x82aaff, // Keyword
    0xc792ea, // Control
    0x82aaff, // Type
    0xd9a5f0, // Qualifier
    0x7fd1c7, // Builtin
    0xe3d18a, // Function
    0x9fd3f5, // Variable
    0xe39fbf, // Preprocessor
    0xf2a272, // Number
    0xb5d58a, // String
    0xf2c38f, // Escape
    0x9aa2b0, // Comment
    0xb9c0cc, // Operator
    0xe3d18a, // Label
    0x9fd3f5, // Key
    0xff8080, // Error
};
constexpr std::array<QRgb, tokenStyleCount> lightTokens{
    0x1f2328, // Text
    0x1d4ed8, // Keyword
    0x8226b8, // Control
    0x1d4ed8, // Type
    0x7a2aa8, // Qualifier
    0x0b6b63, // Builtin
    0x6a5200, // Function
    0x0a5c8a, // Variable
    0xa01d62, // Preprocessor
    0xa8430a, // Number
    0x2f6a1a, // String
    0x8a4a00, // Escape
    0x5f6773, // Comment
    0x3d444d, // Operator
    0x6a5200, // Label
    0x0a5c8a, // Key
    0xb3261e, // Error
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
    code.removedBar = theme.bad;
    code.addedBar = theme.good;
    code.changedBar = theme.warn;
    code.movedBar = QColor::fromRgb(theme.isDark ? 0x9a98f5 : 0x5a57c9);
    code.match = blend(theme.warn, theme.panel, theme.isDark ? 0.35 : 0.28);
    code.currentMatch = blend(theme.warn, theme.panel, theme.isDark ? 0.75 : 0.6);
    code.selection = blend(theme.accent, theme.panel, theme.isDark ? 0.38 : 0.28);
    code.bracket = blend(theme.accent, theme.panel, 0.35);
    code.accent = theme.accent;
    return code;
}

} // namespace klineage::ui
