// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/step.h"
#include "ui/diff/render/heat.h"

namespace klineage::ui {

/// The samples of a row's trial. source: sha-256 of the text that is shown; where it is not what the trial measured, the samples fit
/// no line of it. Empty: not known yet.
[[nodiscard]] HeatSide heatSideOf(const lineage::RowRef &row, const std::string &source);

/// "26.5 %" of 0.2648, with one decimal, and "100 %": as the gutter and all sentences show shares.
[[nodiscard]] QString formatHeat(double share);

/// For above a side: how many samples its trial has, or why there are none.
[[nodiscard]] QString samplesInWords(const HeatSide &side, const Heat &heat);
/// How many samples fell on lines of a side, out of how many, what the warps waited for most, and where that was measured. Empty when the
/// side has no samples.
[[nodiscard]] QString heatInWords(const HeatSide &side, const gate::LineSpan &lines);
/// "−12.3 points of the samples (18.0 % → 5.7 %) at line 88 of K05", and what these shares are of.
[[nodiscard]] QString movedInWords(const HunkHeat &hunk, const Heat &heat);

} // namespace klineage::ui
