// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/lift/cardreply.h"
#include "core/skills/store.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::run {

/// A known card of the same category, and how alike its words are.
struct AlikeCard {
    std::string name;
    double intent = 0; ///< similarity(), 0 … 1
    double locus = 0;
    [[nodiscard]] bool saysTheSame() const { return locus >= similarLocus && intent >= similarIntent; }
};
/// The most alike intents first; with the card itself, where it is among them.
[[nodiscard]] std::vector<AlikeCard> alikeCards(const skills::Card &card,
                                                const std::vector<KnownCard> &known);

/// The known card that says the same: the same category, a similar locus and a similar intent; the most similar of several.
[[nodiscard]] std::optional<std::string> duplicateOf(const skills::Card &card,
                                                     const std::vector<KnownCard> &known);

/// The name, or the name with -2, -3 … when it is taken.
[[nodiscard]] std::string freeName(const std::string &name, const std::vector<KnownCard> &known);

/// A card with the evidence of another that says the same: citations and tried values of both and, while it is a hypothesis, the
/// effects, risks, triggers and values that it lacks and the claimed scope of both. An admitted card says what it said, so that it stays admitted.
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
