// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/style/theme.h"

#include <QCoreApplication>
#include <QString>

#include <string>

namespace klineage::ui::markup {

// Pieces of a card's pages as rich text.

[[nodiscard]] inline QString tr(const char *text)
{
    return QCoreApplication::translate("Card", text);
}

[[nodiscard]] inline QString escaped(const std::string &text)
{
    return QString::fromStdString(text).toHtmlEscaped().replace(QLatin1Char('\n'), QStringLiteral("<br>"));
}

[[nodiscard]] inline QString label(const QString &text)
{
    return QStringLiteral("<p style='margin:10px 0 1px 0; color:%1; font-size:small'>%2</p>")
        .arg(Theme::current().dim.name(), text.toHtmlEscaped());
}

[[nodiscard]] inline QString paragraph(const QString &html)
{
    return QStringLiteral("<p style='margin:0 0 3px 0'>%1</p>").arg(html);
}

[[nodiscard]] inline QString coloured(const QString &html, const QColor &color)
{
    return QStringLiteral("<span style='color:%1'>%2</span>").arg(color.name(), html);
}

/// "card:<name>"
[[nodiscard]] inline QString cardLink(const QString &card)
{
    return QStringLiteral("<a href='card:%1' style='color:%2'>%1</a>")
        .arg(card.toHtmlEscaped(), Theme::current().accent.name());
}

} // namespace klineage::ui::markup
