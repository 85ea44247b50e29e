// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/chain/chain.h"
#include "ui/story/picture/picture.h"

namespace klineage::ui {

/// What the lineages of an overlay are measured by.
enum class OverlayScale {
    First, ///< T_K0 / T: how far each came; medians of two trials, not paired
    Reference, ///< T_ref / T, paired: each over its own vendor reference; states that were not timed beside it are left out
};

/// Several lineages over each other: the way from K0 to K* as 0 to 100 %, speedup on a logarithmic axis, a legend that says what each was
/// measured beside. Pure.
[[nodiscard]] Picture overlay(const std::vector<const lineage::Lineage *> &lineages, OverlayScale scale);

/// The lineages that say most beside one: those of its workload, then others that differ in platform or in how they came about (walked,
/// written), the longest first. Itself first, no more than `most`.
[[nodiscard]] std::vector<const lineage::Lineage *> overlayBeside(const std::vector<lineage::Lineage> &all,
                                                                  const lineage::Lineage &one,
                                                                  std::size_t most);

} // namespace klineage::ui
