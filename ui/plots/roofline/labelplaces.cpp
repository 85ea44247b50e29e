// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/roofline/labelplaces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>

namespace klineage::ui {

namespace {

constexpr double pointRadius = 5;
constexpr std::array rings = {7.0, 16.0, 26.0, 38.0, 52.0, 68.0};
// Right first, then left, then the others: a path climbs, so the sides are the most likely to be free.
constexpr std::array directions = {0.0,   180.0, -45.0, 45.0, 225.0, 135.0,
                                   -90.0, 90.0,  -22.0, 22.0, 202.0, 158.0};

std::array<QPointF, directions.size()> unitVectors()
{
    std::array<QPointF, directions.size()> vectors;
    std::transform(directions.begin(), directions.end(), vectors.begin(), [](double degrees) {
        const double angle = degrees * std::numbers::pi / 180;
        return QPointF(std::cos(angle), std::sin(angle));
    });
    return vectors;
}

/// The name's rectangle when its nearest edge is so far from the point in a direction.
QRectF placeAt(const PlacedName &name, double distance, const QPointF &direction)
{
    const double dx = direction.x();
    const double dy = direction.y();
    const QPointF centre(name.point.x() + dx * distance + dx * name.size.width() / 2,
                         name.point.y() + dy * distance + dy * name.size.height() / 2);
    return {centre.x() - name.size.width() / 2, centre.y() - name.size.height() / 2, name.size.width(),
            name.size.height()};
}

/// Comparing rectangles takes most of the time: QRectF's way also looks for those that are inside out.
struct Box {
    explicit Box(const QRectF &rect)
        : left(rect.left())
        , top(rect.top())
        , right(rect.right())
        , bottom(rect.bottom())
    {}
    [[nodiscard]] bool meets(const Box &other) const
    {
        return left < other.right && other.left < right && top < other.bottom && other.top < bottom;
    }
    double left;
    double top;
    double right;
    double bottom;
};

} // namespace

std::vector<std::optional<QRectF>> placeNames(const std::vector<PlacedName> &names, const QRectF &room,
                                              const std::vector<QRectF> &taken)
{
    static const std::array vectors = unitVectors();
    std::vector<Box> occupied(taken.begin(), taken.end());
    for (const PlacedName &name : names)
        occupied.emplace_back(QRectF(name.point.x() - pointRadius, name.point.y() - pointRadius,
                                     2 * pointRadius, 2 * pointRadius));
    const auto isFree = [&](const QRectF &place) {
        return room.contains(place)
               && std::none_of(occupied.begin(), occupied.end(),
                               [box = Box(place)](const Box &other) { return other.meets(box); });
    };
    const auto placeOf = [&](const PlacedName &name) -> std::optional<QRectF> {
        if (!room.contains(name.point))
            return {};
        for (const double ring : rings) {
            for (const QPointF &direction : vectors) {
                if (const QRectF place = placeAt(name, ring, direction); isFree(place))
                    return place;
            }
        }
        return {};
    };
    std::vector<std::optional<QRectF>> places;
    for (const PlacedName &name : names) {
        places.push_back(placeOf(name));
        if (places.back())
            occupied.emplace_back(*places.back());
    }
    return places;
}

} // namespace klineage::ui
