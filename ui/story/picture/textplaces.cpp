// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/textplaces.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double cellSize = 64;

int cellsIn(double length)
{
    return std::clamp(static_cast<int>(length / cellSize) + 1, 1, 256);
}

} // namespace

TextPlaces::TextPlaces(const QRectF &room)
    : m_room(room)
    , m_columns(cellsIn(room.width()))
    , m_rows(cellsIn(room.height()))
    , m_cells(static_cast<std::size_t>(m_columns) * static_cast<std::size_t>(m_rows))
{}

/// visit says whether to go on.
template <typename Visit>
void TextPlaces::eachCell(const QRectF &place, Visit visit) const
{
    const auto cell = [](double at, int count) {
        return std::clamp(static_cast<int>(at / cellSize), 0, count - 1);
    };
    const int left = cell(place.left() - m_room.left(), m_columns);
    const int right = cell(place.right() - m_room.left(), m_columns);
    const int top = cell(place.top() - m_room.top(), m_rows);
    const int bottom = cell(place.bottom() - m_room.top(), m_rows);
    for (int row = top; row <= bottom; ++row) {
        for (int column = left; column <= right; ++column) {
            if (!visit(static_cast<std::size_t>(row) * static_cast<std::size_t>(m_columns)
                       + static_cast<std::size_t>(column)))
                return;
        }
    }
}

bool TextPlaces::isFree(const QRectF &place) const
{
    if (!m_room.contains(place))
        return false;
    bool isFree = true;
    eachCell(place, [&](std::size_t cell) {
        for (const QRectF &taken : m_cells[cell])
            isFree = isFree && !taken.intersects(place);
        return isFree;
    });
    return isFree;
}

void TextPlaces::take(const QRectF &place)
{
    if (!place.intersects(m_room))
        return;
    eachCell(place, [&](std::size_t cell) {
        m_cells[cell].push_back(place);
        return true;
    });
}

} // namespace klineage::ui
