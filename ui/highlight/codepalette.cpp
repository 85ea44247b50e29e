// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/highlight/codepalette.h"

#include <QPalette>

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

CodePalette CodePalette::from(const QPalette &palette)
{
    const bool dark = palette.color(QPalette::Base).lightness() < 128;
    CodePalette code = fromTokens(dark ? darkTokens : lightTokens);
    code.background = palette.color(QPalette::Base);
    const auto pick = [dark](QRgb onDark, QRgb onLight) { return QColor::fromRgba(dark ? onDark : onLight); };
    code.muted = pick(0xff858d9a, 0xff6a727d);
    code.fold = pick(0xff262a31, 0xfff3f5f8);
    code.separator = pick(0xff343941, 0xffd8dce2);
    code.currentLine = pick(0x18ffffff, 0x0c000000);
    code.filler = pick(0xff2c3037, 0xffe2e5ea);
    code.removed = pick(0xff43242a, 0xfffde8e8);
    code.added = pick(0xff1e3a2a, 0xffe1f4e6);
    code.moved = pick(0xff2c2f4f, 0xffe9e9fb);
    code.removedWord = pick(0xff7a3541, 0xfff6bcbc);
    code.addedWord = pick(0xff2f6b45, 0xffabdfb9);
    code.removedBar = pick(0xffe0606a, 0xffcf3f45);
    code.addedBar = pick(0xff54c186, 0xff1f8a4c);
    code.changedBar = pick(0xffd9a441, 0xffb07a12);
    code.movedBar = pick(0xff8e8cf0, 0xff5a57c9);
    code.match = pick(0x66d9a441, 0x66f2c230);
    code.currentMatch = pick(0xccd9a441, 0xccf2b200);
    code.bracket = pick(0x5582aaff, 0x551d4ed8);
    return code;
}

} // namespace klineage::ui
