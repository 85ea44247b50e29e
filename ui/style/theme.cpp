// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/theme.h"

#include "ui/style/fonts.h"
#include "ui/style/stylesheet.h"

#include <QApplication>
#include <QPalette>
#include <QPointer>
#include <QStyle>
#include <QStyleFactory>
#include <QStyleHints>
#include <QWidget>

#include <utility>
#include <vector>

namespace klineage::ui {

namespace {

ThemeChoice currentChoice = ThemeChoice::System;
const Theme *currentTheme = nullptr;
bool sheetIsLate = false; ///< between applyButSheet() and setSheet()

Theme makeLight()
{
    Theme t;
    t.background = 0xebedf1;
    t.panel = 0xffffff;
    t.header = 0xf5f6f8;
    t.raised = 0xffffff;
    t.border = 0xd7dae0;
    t.text = 0x1b1f26;
    t.dim = 0x565e6b;
    t.faint = 0x5e6572;
    t.accent = 0x1f5fd0;
    t.onAccent = 0xffffff;
    t.selection = 0xd9e6fb;
    t.hover = 0xf0f3f8;
    t.good = 0x11704a;
    t.warn = 0x875600;
    t.bad = 0xbe2437;
    t.diffAdd = 0xe3f4e8;
    t.diffAddWord = 0xb6e5c5;
    t.diffRemove = 0xfdeaea;
    t.diffRemoveWord = 0xfacdd0;
    t.diffMoved = 0xe8eafb;
    t.diffFiller = 0xeff1f4;
    t.diffFold = 0xf3f5f8;
    return t;
}

Theme makeDark()
{
    Theme t;
    t.isDark = true;
    t.background = 0x191b1f;
    t.panel = 0x202327;
    t.header = 0x26292e;
    t.raised = 0x2c3036;
    t.border = 0x353a41;
    t.text = 0xdcdfe4;
    t.dim = 0xadb4bf;
    t.faint = 0xa2a9b4;
    t.accent = 0x7ab0ff;
    t.onAccent = 0x0d1420;
    t.selection = 0x2a3b59;
    t.hover = 0x292d33;
    t.good = 0x57c793;
    t.warn = 0xe0b055;
    t.bad = 0xf79196;
    t.diffAdd = 0x1c3326;
    t.diffAddWord = 0x1f4d34;
    t.diffRemove = 0x3a2227;
    t.diffRemoveWord = 0x66303a;
    t.diffMoved = 0x2b2f4d;
    t.diffFiller = 0x1c1f23;
    t.diffFold = 0x25282e;
    return t;
}

/// Dark when the desktop is. Before Qt 6.5 only the palette that the platform came with tells; it is read once, before ours is set.
bool systemIsDark()
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
    const Qt::ColorScheme scheme = QGuiApplication::styleHints()->colorScheme();
    if (scheme != Qt::ColorScheme::Unknown)
        return scheme == Qt::ColorScheme::Dark;
#endif
    static const bool dark = [] {
        const QPalette platform = QGuiApplication::palette();
        return platform.color(QPalette::WindowText).lightness()
               > platform.color(QPalette::Window).lightness();
    }();
    return dark;
}

void followSystem(QApplication &application)
{
#if QT_VERSION >= QT_VERSION_CHECK(6, 5, 0)
    static bool connected = false;
    if (connected)
        return;
    connected = true;
    QObject::connect(QGuiApplication::styleHints(), &QStyleHints::colorSchemeChanged, &application,
                     [&application] {
                         if (currentChoice == ThemeChoice::System)
                             Theme::apply(application, ThemeChoice::System);
                     });
#else
    Q_UNUSED(application)
#endif
}

} // namespace

QString toString(ThemeChoice choice)
{
    switch (choice) {
    case ThemeChoice::Light:
        return QStringLiteral("light");
    case ThemeChoice::Dark:
        return QStringLiteral("dark");
    case ThemeChoice::System:
        break;
    }
    return QStringLiteral("system");
}

ThemeChoice themeChoiceFromString(const QString &name)
{
    if (name == QLatin1String("light"))
        return ThemeChoice::Light;
    if (name == QLatin1String("dark"))
        return ThemeChoice::Dark;
    return ThemeChoice::System;
}

const Theme &Theme::light()
{
    static const Theme theme = makeLight();
    return theme;
}

const Theme &Theme::dark()
{
    static const Theme theme = makeDark();
    return theme;
}

const Theme &Theme::current()
{
    return currentTheme ? *currentTheme : light();
}

ThemeChoice Theme::choice()
{
    return currentChoice;
}

void Theme::apply(QApplication &application, ThemeChoice choice)
{
    const bool systemDark = systemIsDark();
    currentChoice = choice;
    const bool dark = choice == ThemeChoice::System ? systemDark : choice == ThemeChoice::Dark;
    const Theme &theme = dark ? Theme::dark() : Theme::light();
    if (currentTheme == &theme)
        return;
    if (!currentTheme) {
        loadFonts();
        QApplication::setStyle(QStyleFactory::create(QStringLiteral("Fusion")));
        QApplication::setFont(interfaceFont());
        followSystem(application);
    }
    currentTheme = &theme;
    QApplication::setPalette(theme.palette());
    if (!sheetIsLate)
        application.setStyleSheet(styleSheet(theme));
}

void Theme::applyButSheet(QApplication &application, ThemeChoice choice)
{
    sheetIsLate = true;
    apply(application, choice);
}

void Theme::setSheet(QApplication &application)
{
    if (std::exchange(sheetIsLate, false))
        application.setStyleSheet(styleSheet(current()));
}

/// To each widget by itself: Qt tells the widgets of a font with the style sheet alone, and to read that anew costs a hundred times as much.
void Theme::setTextScale(double scale)
{
    const double before = textScale();
    ui::setTextScale(scale);
    if (textScale() == before || !currentTheme)
        return;
    QApplication::setFont(interfaceFont());
    struct Told {
        QPointer<QWidget> widget;
        double ownPoints; ///< 0: it has no size of its own
    };
    std::vector<Told> all;
    for (QWidget *widget : QApplication::allWidgets()) {
        const bool isOwn = widget->testAttribute(Qt::WA_SetFont)
                           && (widget->font().resolveMask() & QFont::SizeResolved) != 0;
        all.push_back({widget, isOwn ? widget->font().pointSizeF() : 0});
    }
    for (const Told &told : all) {
        if (!told.widget)
            continue;
        if (told.ownPoints > 0) {
            QFont font = told.widget->font();
            font.setPointSizeF(told.ownPoints * textScale() / before);
            told.widget->setFont(font);
        }
        QEvent change(QEvent::ApplicationFontChange);
        QCoreApplication::sendEvent(told.widget, &change);
    }
}

QPalette Theme::palette() const
{
    QPalette p;
    p.setColor(QPalette::Window, background);
    p.setColor(QPalette::WindowText, text);
    p.setColor(QPalette::Base, panel);
    p.setColor(QPalette::AlternateBase, header);
    p.setColor(QPalette::Text, text);
    p.setColor(QPalette::Button, raised);
    p.setColor(QPalette::ButtonText, text);
    p.setColor(QPalette::BrightText, bad);
    p.setColor(QPalette::ToolTipBase, raised);
    p.setColor(QPalette::ToolTipText, text);
    p.setColor(QPalette::PlaceholderText, dim);
    p.setColor(QPalette::Highlight, selection);
    p.setColor(QPalette::HighlightedText, text);
    p.setColor(QPalette::Link, accent);
    p.setColor(QPalette::LinkVisited, accent);
    p.setColor(QPalette::Light, blend(Qt::white, raised, isDark ? 0.06 : 0.6));
    p.setColor(QPalette::Midlight, blend(Qt::white, raised, isDark ? 0.03 : 0.3));
    p.setColor(QPalette::Mid, border);
    p.setColor(QPalette::Dark, blend(Qt::black, border, 0.25));
    p.setColor(QPalette::Shadow, isDark ? QColor(0, 0, 0) : QColor(120, 126, 136));
    for (const QPalette::ColorRole role :
         {QPalette::WindowText, QPalette::Text, QPalette::ButtonText, QPalette::HighlightedText})
        p.setColor(QPalette::Disabled, role, faint);
    p.setColor(QPalette::Disabled, QPalette::Highlight, hover);
    return p;
}

QColor blend(const QColor &color, const QColor &ground, double opacity)
{
    const auto mix = [opacity](int over, int under) {
        return qRound(over * opacity + under * (1.0 - opacity));
    };
    return {mix(color.red(), ground.red()), mix(color.green(), ground.green()),
            mix(color.blue(), ground.blue())};
}

} // namespace klineage::ui
