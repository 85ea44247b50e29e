// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/view/geometry.h"
#include "ui/diff/view/viewstate.h"

#include <QCoreApplication>

class QPainter;

namespace klineage::ui {

/// Draws the visible rows of a ViewState. Decides nothing: what is where comes from the state and the geometry.
class DiffPainter
{
    Q_DECLARE_TR_FUNCTIONS(DiffPainter)

public:
    DiffPainter(QPainter &painter, ViewState &state, LineLayouts &layouts, const ViewGeometry &geometry,
                const CodePalette &palette);

    /// top, scrolled: pixels that are scrolled out above and at the left. area: what has to be drawn.
    void paint(int top, int scrolled, const QRect &area, bool hasFocus);

private:
    struct Cell {
        Side side;
        int diffRow;
        QRect rect; ///< the row within its column
    };

    /// Behind a part of a line.
    struct RangeStyle {
        QColor fill;
        QColor frame; ///< invalid: none
        bool isRounded = true;
    };

    void paintColumn(Side side, int firstRow, int lastRow);
    void paintMessage(const ColumnGeometry &column, const QString &message);
    void paintFold(const ViewRow &row, const ColumnGeometry &column, const QRect &rect, Side side);
    void paintCell(const Cell &cell, const ColumnGeometry &column);
    void markCurrent(const QRect &rect);
    void markShown(const Cell &cell, const ColumnGeometry &column, const diff::Row &row);
    /// The stall samples of a row, or of what it hides: a bar and the share as a number.
    void paintHeat(const ViewRow &row, const ColumnGeometry &column, const QRect &rect);
    /// A bar along the lines that comments are on, and a sign where each begins.
    void paintComments(const ViewRow &row, const ColumnGeometry &column, const QRect &rect, Side side);
    void paintGutter(const Cell &cell, const ColumnGeometry &column, const diff::Row &row);
    void paintText(const Cell &cell, const ColumnGeometry &column, const diff::Row &row);
    void paintRange(const Cell &cell, const ColumnGeometry &column, const LineLayout &line, int begin,
                    int end, const RangeStyle &style);
    void paintMoveHint(const Cell &cell, const ColumnGeometry &column, const diff::Row &row,
                       const LineLayout &line);
    [[nodiscard]] QColor background(const diff::Row &row, Side side) const;
    [[nodiscard]] QColor barColor(const diff::Row &row) const;

    QPainter &m_painter;
    ViewState &m_state;
    LineLayouts &m_layouts;
    const ViewGeometry &m_geometry;
    const CodePalette &m_palette;
    int m_top = 0;
    int m_scrolled = 0;
    bool m_isCurrent = false; ///< the row that is being drawn
    bool m_hasFocus = false;
};

/// Where the other end of a moved row is: the 0-based line on the other side; -1 when the row did not move.
[[nodiscard]] int movedCounterpart(const Document &document, int diffRow);

} // namespace klineage::ui
