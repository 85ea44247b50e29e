// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>

#include <optional>
#include <vector>

namespace klineage::ui {

/// A name that stands beside a point.
struct PlacedName {
    QPointF point;
    QSizeF size;
};

/// Places for names beside their points, so that none covers another, a point or what is taken already, and all lie in the room: near the
/// point, else further off in rings around it. A name for which there is no place gets none; earlier ones go first. Pure.
[[nodiscard]] std::vector<std::optional<QRectF>> placeNames(const std::vector<PlacedName> &names,
                                                            const QRectF &room,
                                                            const std::vector<QRectF> &taken = {});

} // namespace klineage::ui
