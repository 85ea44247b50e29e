// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFont>

namespace klineage::ui {

/// Registers the bundled fonts; called once by Theme::apply().
void loadFonts();

/// Factor on the size of all text; 1 as designed, kept between 0.7 and 2.5. Takes effect with Theme::setTextScale().
[[nodiscard]] double textScale();
void setTextScale(double scale);

/// Inter with tabular digits: the application's font.
[[nodiscard]] QFont interfaceFont();
/// JetBrains Mono without ligatures, at the size that fits beside interfaceFont().
[[nodiscard]] QFont codeFont();

/// The font relative to the application's own: captions are smaller, headings semibold.
[[nodiscard]] QFont captionFont();
[[nodiscard]] QFont strongFont();

} // namespace klineage::ui
