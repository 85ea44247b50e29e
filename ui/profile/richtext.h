// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/style/theme.h"

#include <QString>

#include <string>

namespace klineage::ui {

/// What core says, as text of a page that is rich text.
[[nodiscard]] inline QString escaped(const std::string &text)
{
    return QString::fromStdString(text).toHtmlEscaped();
}

/// In the colour of what is secondary.
[[nodiscard]] inline QString dimmed(const QString &html)
{
    return QStringLiteral("<span style=\"color:%1\">%2</span>").arg(Theme::current().dim.name(), html);
}

} // namespace klineage::ui
