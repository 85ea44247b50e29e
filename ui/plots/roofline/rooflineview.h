// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "ui/plots/roofline/rooflineplot.h"

namespace klineage::ui {

/// The chain from K0 to a row as a path, and the lineage's other states beside it.
[[nodiscard]] RooflineView rooflineOf(const lineage::Lineage &lineage, const QString &row);

} // namespace klineage::ui
