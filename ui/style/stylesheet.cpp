// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/stylesheet.h"

#include "ui/style/theme.h"

#include <QFile>

static void initThemeResources()
{
    Q_INIT_RESOURCE(themes);
}

namespace klineage::ui {

QString styleSheet(const Theme &theme)
{
    initThemeResources();
    QFile file(QStringLiteral(":/themes/window.qss"));
    if (!file.open(QIODevice::ReadOnly))
        return {};
    QString text = QString::fromUtf8(file.readAll());
    const std::pair<const char *, QColor> roles[] = {
        {"@background@", theme.background},
        {"@panel@", theme.panel},
        {"@header@", theme.header},
        {"@raised@", theme.raised},
        {"@border@", theme.border},
        {"@text@", theme.text},
        {"@dim@", theme.dim},
        {"@faint@", theme.faint},
        {"@accent@", theme.accent},
        {"@onAccent@", theme.onAccent},
        {"@selection@", theme.selection},
        {"@hover@", theme.hover},
        {"@good@", theme.good},
        {"@pressed@", blend(theme.text, theme.raised, 0.12)},
        {"@handle@", blend(theme.text, theme.panel, theme.isDark ? 0.26 : 0.22)},
        {"@primary@", theme.good},
        {"@onPrimary@", theme.isDark ? theme.onAccent : QColor(Qt::white)},
    };
    for (const auto &[name, color] : roles)
        text.replace(QLatin1String(name), color.name());
    return text;
}

} // namespace klineage::ui
