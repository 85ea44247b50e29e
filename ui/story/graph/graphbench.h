// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

namespace klineage::ui {

/// Milliseconds of processor time of each frame of a made-up search of so many candidates (eight islands, branches of all lengths, the same every time), in a
/// canvas of 1600 × 1000 pixels that is rendered in software: at every zoom from all of it to single candidates, and panned at each. The
/// layout is not among them. GUI thread, for klineage-bench.
[[nodiscard]] std::vector<double> graphFrameTimes(int candidates);

/// Milliseconds that the layout of the same takes: from the nodes to the picture.
[[nodiscard]] double graphLayoutTime(int candidates);

} // namespace klineage::ui
