// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/skills/card.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace klineage::run {

/// What an author gets of the library: the arms of an experiment, in which nothing else differs. Option "arm" of a materialization.
enum class Arm {
    Full,     ///< what retrieval brings; also where nothing is said
    None,     ///< no cards: the same engine without them
    Shuffled, ///< a placebo: as many bytes of cards that retrieval did not choose and whose categories it did not
    Index,    ///< a line a card; their texts are never shown
    NoBlocks, ///< without building blocks
    NoRisks,  ///< without risks
};
[[nodiscard]] const std::vector<std::string> &armNames();
/// InvalidInput for a name that is none.
[[nodiscard]] Result<Arm> armOf(const std::map<std::string, std::string> &options);

/// The card as the arm shows it.
[[nodiscard]] skills::CardRecord shownIn(Arm arm, skills::CardRecord record);

/// Names of cards of the language whose texts come as near to `bytes` as their order, which the seed draws, allows; never one of `taken` nor
/// of a category that one of these has.
[[nodiscard]] std::vector<std::string> placeboOf(const std::vector<skills::CardRecord> &library,
                                                 const std::set<std::string> &taken,
                                                 const std::string &language, std::size_t bytes,
                                                 std::uint64_t seed);

} // namespace klineage::run
