// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

struct Theme;

/// resources/themes/window.qss with its @role@ names replaced by the theme's colours.
[[nodiscard]] QString styleSheet(const Theme &theme);

} // namespace klineage::ui
