// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"
#include "core/run/activerun.h"
#include "core/run/subject.h"
#include "core/workspace/workspace.h"

#include <string>
#include <vector>

namespace klineage::run {

/// A card as it was retrieved for a run, and why.
struct TakenCard {
    policy::LoadedCard card;
    int revision = 0;
    std::vector<std::string> reasons; ///< sentences
};

/// A near miss of retrieval.
struct BlockedCard {
    std::string card;
    std::vector<std::string> rules; ///< sentences
};

struct CardChoice {
    std::vector<TakenCard> taken;     ///< best first
    std::vector<std::string> present; ///< cards that fit and that the root shows already
    std::vector<BlockedCard> blocked;
};

[[nodiscard]] std::string writeCardChoice(const CardChoice &choice);
[[nodiscard]] Result<CardChoice> parseCardChoice(const std::string &text, const std::string &fileName);

/// The cards that fit the root, and those that fit once these are applied, by the workspace's library and lineages. Options as below.
[[nodiscard]] CardChoice chooseCards(const Workspace &workspace, const Settings &settings,
                                     const Subject &root, int most);
inline constexpr int mostCardsAbsent = 24; ///< "most_cards" when it is not said

/// chooseCards() of the run's workspace, kept in the run as cards.json: cards that are changed later change nothing of a run that is
/// gone on with. Options: "hypotheses" = "yes" takes cards that were never admitted too; "held_out" =
/// "yes" leaves out cards that rest on lineages of the run's own workload, and these lineages themselves; "most_cards".
[[nodiscard]] Result<CardChoice> keepCards(const ActiveRun &run, const Subject &root);

} // namespace klineage::run
