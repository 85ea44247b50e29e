// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/geometry.h"

#include <QString>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr int heatColumns = 6; // "97.7 %"

/// The sides whose stall samples have room in a column.
using HeatSides = std::array<bool, 2>;

ColumnGeometry makeColumn(const QRect &rect, bool twoNumbers, const HeatSides &heat, int lines,
                          double columnWidth)
{
    const int digits = std::max(3, static_cast<int>(QString::number(lines).size()));
    const int numberWidth = static_cast<int>(std::ceil(digits * columnWidth));
    ColumnGeometry geometry;
    geometry.rect = rect;
    geometry.heatWidth = heatEdge + 3 + static_cast<int>(std::ceil(heatColumns * columnWidth)) + 3;
    int left = rect.left() + markWidth;
    for (std::size_t side = 0; side < heat.size(); ++side) {
        if (heat[side]) {
            geometry.heatLeft[side] = left;
            left += geometry.heatWidth + 3;
        }
    }
    geometry.numberRight = left + numberWidth;
    int right = geometry.numberRight;
    if (twoNumbers) {
        geometry.otherNumberRight = right + 8 + numberWidth;
        right = geometry.otherNumberRight;
    }
    geometry.signLeft = right + 5;
    geometry.barLeft = geometry.signLeft + static_cast<int>(std::ceil(columnWidth)) + 3;
    geometry.textLeft = geometry.barLeft + changeBarWidth + 7;
    return geometry;
}

} // namespace

int ViewGeometry::topOf(int row) const
{
    if (tops.empty())
        return row * rowHeight;
    const int last = static_cast<int>(tops.size()) - 1;
    return row <= last ? tops[static_cast<std::size_t>(std::max(0, row))]
                       : tops.back() + (row - last) * rowHeight;
}

int ViewGeometry::rowAt(int y) const
{
    if (tops.empty())
        return y / rowHeight;
    if (y >= tops.back())
        return static_cast<int>(tops.size()) - 1 + (y - tops.back()) / rowHeight;
    return std::max(0, static_cast<int>(std::upper_bound(tops.begin(), tops.end(), y) - tops.begin()) - 1);
}

ViewGeometry ViewGeometry::make(const QSize &viewport, bool split, bool unified, int lines,
                                double columnWidth, int rowHeight, const HeatSides &heat)
{
    ViewGeometry geometry;
    geometry.isSplit = split;
    geometry.rowHeight = rowHeight;
    if (split) {
        const int half = viewport.width() / 2;
        geometry.columns[0] =
            makeColumn(QRect(0, 0, half, viewport.height()), false, {heat[0], false}, lines, columnWidth);
        geometry.columns[1] = makeColumn(QRect(half + 1, 0, viewport.width() - half - 1, viewport.height()),
                                         false, {false, heat[1]}, lines, columnWidth);
    } else {
        geometry.columns[0] = makeColumn(QRect(QPoint(0, 0), viewport), unified, heat, lines, columnWidth);
        geometry.columns[1] = geometry.columns[0];
    }
    return geometry;
}

} // namespace klineage::ui
