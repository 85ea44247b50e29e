// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/plots/roofline/rooflineplot.h"
#include "ui/plots/table/plottable.h"

namespace klineage::ui {

/// A row a state, those on the path first, then a row a ceiling with its source.
[[nodiscard]] PlotTable rooflineTable(const RooflineView &view);

} // namespace klineage::ui
