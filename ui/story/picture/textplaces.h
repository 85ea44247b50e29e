// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QRectF>

#include <vector>

namespace klineage::ui {

/// Rectangles that are taken, in a grid: texts are put one after the other where none is yet.
class TextPlaces
{
public:
    explicit TextPlaces(const QRectF &room);

    [[nodiscard]] bool isFree(const QRectF &place) const; ///< within the room, and nothing there
    void take(const QRectF &place);

private:
    template <typename Visit>
    void eachCell(const QRectF &place, Visit visit) const;

    QRectF m_room;
    int m_columns;
    int m_rows;
    std::vector<std::vector<QRectF>> m_cells;
};

} // namespace klineage::ui
