// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"

#include <QRect>

#include <array>
#include <vector>

namespace klineage::ui {

/// Where things are in one column of the view: marks, heat, number, sign, bar, text, from left to right. Logical pixels.
struct ColumnGeometry {
    QRect rect;
    std::array<int, 2> heatLeft{-1, -1}; ///< by side: where its stall samples are; -1: not in this column
    int heatWidth = 0;
    int numberRight = 0;      ///< right edge of the line number
    int otherNumberRight = 0; ///< unified: right edge of the right text's number, else 0
    int signLeft = 0;
    int barLeft = 0;
    int textLeft = 0;

    [[nodiscard]] int textWidth() const { return rect.right() + 1 - textLeft; }
};

inline constexpr int markWidth = 14; ///< at the left: comments, and the line that another panel points at
inline constexpr int changeBarWidth = 3;
inline constexpr int heatEdge = 2; ///< at the left of a bar of heat

/// The whole view: two columns side by side, or one.
struct ViewGeometry {
    bool isSplit = false;
    int rowHeight = 18; ///< of a line; a row whose lines are wrapped is several of them high
    std::array<ColumnGeometry, 2> columns; ///< not split: both are the same
    int wrapWidth = 0; ///< pixels of text after which a line goes on below itself; 0: it does not
    std::vector<int>
        tops; ///< wrapped: top of each row and the end of the last; empty: all rows are rowHeight high

    [[nodiscard]] int topOf(int row) const;
    [[nodiscard]] int heightOf(int row) const { return topOf(row + 1) - topOf(row); }
    [[nodiscard]] int rowAt(int y) const; ///< y from the top of the first row; not limited to existing rows

    [[nodiscard]] const ColumnGeometry &column(Side side) const
    {
        return columns[static_cast<std::size_t>(side)];
    }
    /// columnWidth: of a digit. lines: the greater line count. heat: the sides whose stall samples are shown.
    [[nodiscard]] static ViewGeometry make(const QSize &viewport, bool split, bool unified, int lines,
                                           double columnWidth, int rowHeight,
                                           const std::array<bool, 2> &heat = {});
};

} // namespace klineage::ui
