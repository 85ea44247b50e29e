// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/models/lineagerow.h"

#include <QRectF>

class QPainter;

namespace klineage::ui {

/// Width that the graph takes at the left of each row.
[[nodiscard]] int graphWidth();

/// Draws the graph's part in a row: the main line, the connector of what was tried, and the node. `isCurrent` puts a ring around it.
void paintGraphCell(QPainter *painter, const QRectF &row, const LineageRow &shown, bool isCurrent);

/// Compile, correctness, profile as three glyphs, centred in rect: a tick, a cross, or a dot for a stage that was not reached.
void paintStages(QPainter *painter, const QRectF &rect, const StageOutcomes &stages);

} // namespace klineage::ui
