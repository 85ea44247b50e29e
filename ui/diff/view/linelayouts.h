// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"
#include "ui/highlight/codepalette.h"

#include <QFont>
#include <QTextLayout>

#include <unordered_map>

namespace klineage::ui {

/// A line that is shaped and coloured, ready to be drawn many times. Of a very long line only a window is shaped.
class LineLayout
{
public:
    LineLayout(const QString &text, int firstUnit, double charWidth);

    [[nodiscard]] double xOf(int unit) const;
    [[nodiscard]] int unitAt(double x) const;
    [[nodiscard]] double width() const;
    /// Units of the whole line.
    [[nodiscard]] int length() const { return m_length; }
    void draw(QPainter &painter, const QPointF &origin) const;

private:
    friend class LineLayouts;
    QTextLayout m_layout;
    int m_firstUnit = 0;
    int m_length = 0;
    double m_charWidth = 0;
};

/// Shaped lines, made when they are first seen. GUI thread.
class LineLayouts
{
public:
    void setStyle(const QFont &font, const CodePalette &palette); ///< forgets everything
    void clear() { m_lines.clear(); }
    /// Forgets lines [first, first + count) of a side, whose highlighting has changed.
    void forget(Side side, int first, int count);

    /// scrolled: pixels that are scrolled out at the left; picks the window of a very long line.
    const LineLayout &line(const TextLines &text, Side side, int line, const LineRuns &runs, int scrolled);

    [[nodiscard]] double charWidth() const { return m_charWidth; }
    [[nodiscard]] const QFont &font() const { return m_font; }

private:
    QFont m_font;
    CodePalette m_palette;
    double m_charWidth = 8;
    std::unordered_map<quint64, std::unique_ptr<LineLayout>> m_lines;
};

} // namespace klineage::ui
