// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"
#include "core/trial/verdict.h"

#include <string>
#include <vector>

namespace klineage::run {

/// The gains against a parent that a card of format 2 has as figures, ascending, each above 1 for certain.
[[nodiscard]] std::vector<double> typedFactors(const skills::Card &card);

/// Why what was measured against the target is not the effect that a card claims; empty: it is. claimed: the gains that the card names as
/// factors, ascending, each above 1. A gain counts on the scale of its logarithm: from half of the smallest claim to twice the largest,
/// but never less than 2×, as far as the interval lets one tell. Without claims any gain will do.
[[nodiscard]] std::string effectShortfall(const std::vector<double> &claimed,
                                          const gate::Comparison *comparison);

} // namespace klineage::run
