// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/lift/cardreply.h"
#include "core/skills/store.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::run {

/// The known card that says the same: the same category, a similar locus and a similar intent; the most similar of several.
[[nodiscard]] std::optional<std::string> duplicateOf(const skills::Card &card,
                                                     const std::vector<KnownCard> &known);

/// The name, or the name with -2, -3 … when it is taken.
[[nodiscard]] std::string freeName(const std::string &name, const std::vector<KnownCard> &known);

/// A card with the evidence of another that says the same: citations of both, the new effects and risks that it does not have yet, and,
/// while it is a hypothesis, the claimed scope of both. What was verified is never widened by a merge.
[[nodiscard]] skills::Card merged(const skills::CardRecord &kept, const skills::Card &added);

/// Stores a new card as a hypothesis, under a name that was free when the run began. A card that is there now with the same category
/// and at least this evidence is this one, stored before a kill or before this replay, and perhaps edited since; another is Conflict.
[[nodiscard]] Status storeCard(const skills::CardStore &store, const LiftedCard &lifted);
/// Merges into the card of that name; nothing is written when all of it is there.
[[nodiscard]] Status mergeCard(const skills::CardStore &store, const std::string &name,
                               const skills::Card &added, const std::string &run);

/// Names the card in those of the cited transitions that name none.
[[nodiscard]] Status linkTransitions(const std::filesystem::path &workspace, const std::string &card,
                                     const std::vector<skills::Citation> &transitions);

} // namespace klineage::run
