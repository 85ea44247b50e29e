// SPDX-License-Identifier: GPL-3.0-or-later
// The rows of the group "ui": what the window promises about its speed. Each is measured by the file that knows the thing.
#pragma once

#include "bench.h"

#include "core/skills/store.h"

namespace klineage::bench {

inline constexpr int cardCount = 10'000;
inline constexpr int stateCount = 300;

void firstWindow(Reporter &reporter);    ///< benchstartup.cpp
void steps(Reporter &reporter);          ///< benchsteps.cpp
void layoutSwitches(Reporter &reporter); ///< benchlayouts.cpp
void longDiff(Reporter &reporter);       ///< benchdiff.cpp
void highlighting(Reporter &reporter);   ///< benchhighlight.cpp
void graphFrames(Reporter &reporter);    ///< benchgraph.cpp
void plotFrames(Reporter &reporter);     ///< benchplots.cpp
void filterKeys(Reporter &reporter);     ///< benchfilter.cpp

/// A card that was never written, the i-th of many: categories, platforms and reviews take turns.
[[nodiscard]] skills::CardRecord syntheticCard(int i);

/// A workspace on the disk: the shipped workloads, their lineages over and over under other names, and cards. False: `why` says why not.
[[nodiscard]] bool makeWorkspaceOnDisk(const std::filesystem::path &root, std::size_t lineages, int cards,
                                       QString *why);

} // namespace klineage::bench
