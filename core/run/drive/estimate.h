// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/prices.h"
#include "core/run/journal.h"

#include <optional>

namespace klineage::run {

/// What a run will probably cost, before it begins.
struct Estimate {
    double firstDollars = 0; ///< of the first question: root, workload and cards are read for the first time
    double laterDollars = 0; ///< of a question after it: the same from the cache, and what was said since
    int questions = 0;       ///< that the cap, or the step limit, allows for
    double dollars = 0;      ///< of all of them
    std::string text;        ///< the same in a sentence
};

/// Of a materialization by a paid provider; empty when replies cost nothing. cardBytes: of the cards that will be shown. NotFound, with
/// the lines to add to which file, for a model without a price.
[[nodiscard]] Result<std::optional<Estimate>> estimateCost(const Settings &settings, bool isPaid,
                                                           const llm::PriceTable &prices,
                                                           std::size_t rootBytes, std::size_t cardBytes);

} // namespace klineage::run
