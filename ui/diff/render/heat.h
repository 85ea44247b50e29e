// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/linesamples.h"
#include "ui/diff/render/viewrows.h"

#include <array>
#include <memory>
#include <vector>

namespace klineage::ui {

/// The stall samples of one side, or why there are none.
struct HeatSide {
    gate::LineSamples samples;
    QString label;  ///< "K05": whose trial it is
    QString device; ///< "NVIDIA H200"
    QString why;    ///< a sentence; empty when there are samples
};

/// The stall samples of both sides of a document. Immutable.
struct Heat {
    std::array<HeatSide, 2> sides; ///< by side
    double full = 1; ///< the share at which a bar is full: that of the hottest line of either side

    [[nodiscard]] const HeatSide &side(Side which) const { return sides[static_cast<std::size_t>(which)]; }
    [[nodiscard]] bool has(Side which) const { return !side(which).samples.isEmpty(); }
};
using HeatPtr = std::shared_ptr<const Heat>;

/// Below this share of a trial's samples nothing is painted.
inline constexpr double heatFloor = 0.005;

[[nodiscard]] HeatPtr makeHeat(HeatSide left, HeatSide right);

/// The lines of a side that rows [firstRow, firstRow + rowCount) of the diff hold; they are neighbours.
[[nodiscard]] gate::LineSpan linesOfRows(const diff::Diff &diff, int firstRow, int rowCount, Side side);
/// The lines of a side that a row of the view shows, or that it hides as a fold.
[[nodiscard]] gate::LineSpan linesOfViewRow(const diff::Diff &diff, const ViewRow &row, Side side);

/// The samples of a hunk on both sides, as shares of two trials.
struct HunkHeat {
    int hunk = 0;
    double left = 0; ///< 0 … 1
    double right = 0;
    SideLine hottest; ///< of the side with the greater share; its first line where no sample fell on it

    [[nodiscard]] double moved() const { return right - left; }
};
/// Every hunk, the one first where most moved, up or down.
[[nodiscard]] std::vector<HunkHeat> hunksByMoved(const diff::Diff &diff, const Heat &heat);

} // namespace klineage::ui
