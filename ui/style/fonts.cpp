// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/fonts.h"

#include <QApplication>
#include <QFontDatabase>

#include <algorithm>

/// Resources of a static library are not there before somebody asks for them; outside of any namespace, as Qt wants it.
static void initFontResources()
{
    Q_INIT_RESOURCE(fonts);
}

namespace klineage::ui {

namespace {

constexpr double interfacePoints = 9.75; // 13 px at 96 dpi
constexpr double codePoints = 9.375;     // 12.5 px
double currentScale = 1;

} // namespace

void loadFonts()
{
    static const bool loaded = [] {
        initFontResources();
        for (const char *file :
             {"inter/InterTabular-Regular.otf", "inter/InterTabular-Medium.otf",
              "inter/InterTabular-SemiBold.otf", "inter/InterTabular-Italic.otf",
              "jetbrains-mono/JetBrainsMonoNL-Regular.ttf", "jetbrains-mono/JetBrainsMonoNL-Italic.ttf",
              "jetbrains-mono/JetBrainsMonoNL-Bold.ttf"})
            QFontDatabase::addApplicationFont(QStringLiteral(":/fonts/") + QLatin1String(file));
        return true;
    }();
    Q_UNUSED(loaded)
}

double textScale()
{
    return currentScale;
}

void setTextScale(double scale)
{
    currentScale = std::clamp(scale, 0.7, 2.5);
}

QFont interfaceFont()
{
    QFont font(QStringLiteral("Inter Tabular"));
    font.setPointSizeF(interfacePoints * currentScale);
    font.setHintingPreference(QFont::PreferVerticalHinting);
    return font;
}

QFont codeFont()
{
    QFont font(QStringLiteral("JetBrains Mono NL"));
    font.setStyleHint(QFont::Monospace);
    font.setFixedPitch(true);
    font.setPointSizeF(codePoints * currentScale);
    font.setHintingPreference(QFont::PreferVerticalHinting);
    return font;
}

QFont captionFont()
{
    QFont font = QApplication::font();
    font.setPointSizeF(font.pointSizeF() * 0.9);
    return font;
}

QFont strongFont()
{
    QFont font = QApplication::font();
    font.setWeight(QFont::DemiBold);
    return font;
}

} // namespace klineage::ui
