// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace klineage::ui {

struct Theme;

/// resources/themes/window.qss with its @role@ names replaced by the theme's colours.
[[nodiscard]] QString styleSheet(const Theme &theme);

/// While it lives the application has no style sheet. A window is built from the inside out, and under a style sheet Qt styles all that is
/// in a widget anew each time that the widget is given a parent.
class StyleSheetPause
{
public:
    StyleSheetPause();
    ~StyleSheetPause();
    StyleSheetPause(const StyleSheetPause &) = delete;
    StyleSheetPause &operator=(const StyleSheetPause &) = delete;

private:
    QString m_paused;
};

} // namespace klineage::ui
