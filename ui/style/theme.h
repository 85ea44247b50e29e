// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QString>

class QApplication;
class QPalette;

namespace klineage::ui {

/// What the user asked for; System follows the desktop.
enum class ThemeChoice { System, Light, Dark };
[[nodiscard]] QString toString(ThemeChoice choice); ///< system light dark
[[nodiscard]] ThemeChoice themeChoiceFromString(const QString &name);

/// Colours by role. Widgets ask Theme::current() while painting, and repaint on QEvent::PaletteChange.
/// Status colours differ in lightness as well as in hue, and never stand without a glyph, sign or word.
struct Theme {
    bool isDark = false;

    QColor background; ///< between the panels
    QColor panel;      ///< behind lists, tables, code
    QColor header;     ///< title bars of panels, table headers
    QColor raised;     ///< buttons, inputs, popups
    QColor border;     ///< hairlines and frames
    QColor text;
    QColor dim;    ///< secondary text: labels, units, captions
    QColor faint;  ///< the quietest that can still be read (4.5 : 1): disabled text, unused guides
    QColor accent; ///< the one accent: focus, links, the current thing
    QColor onAccent;
    QColor selection; ///< behind a selected row that has the focus, or whose panel leads
    QColor hover;     ///< behind the row under the mouse, and the row that another panel points at

    QColor good; ///< gain, correct, admitted
    QColor warn; ///< undecided, hypothesis, needs evidence
    QColor bad;  ///< failed, rejected, loss

    QColor diffAdd;
    QColor diffAddWord;
    QColor diffRemove;
    QColor diffRemoveWord;
    QColor diffMoved;
    QColor diffFiller; ///< hatching where one side has no line
    QColor diffFold;   ///< behind "42 unchanged lines"

    /// The theme in use; Light before apply() was called.
    [[nodiscard]] static const Theme &current();
    [[nodiscard]] static const Theme &light();
    [[nodiscard]] static const Theme &dark();

    /// Sets style, palette, fonts and style sheet of the application; repeatable at any time, from the GUI thread.
    static void apply(QApplication &application, ThemeChoice choice);
    /// As apply(), but for the style sheet, which setSheet() adds: at a start, before there are widgets and once they are made. Under a sheet
    /// Qt tells a widget, and all in it, of a change of style whenever it is put into another; a window is made of many in many.
    static void applyButSheet(QApplication &application, ThemeChoice choice);
    static void setSheet(QApplication &application);
    [[nodiscard]] static ThemeChoice choice();
    /// All text of the application by a factor; 1 as designed. After apply().
    static void setTextScale(double scale);

    [[nodiscard]] QPalette palette() const;
};

/// color laid over ground with the given opacity, as an opaque colour.
[[nodiscard]] QColor blend(const QColor &color, const QColor &ground, double opacity);

} // namespace klineage::ui
