// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <nlohmann/json_fwd.hpp>

#include <string>
#include <string_view>
#include <vector>

namespace klineage::interop {

/// A card of another library, as a hypothesis: nothing that it says was verified here.
struct ForeignCard {
    skills::Card card; ///< with its origin but for the digest; its name is one that is accepted here
    std::string carrier;
    std::vector<std::string> notes; ///< what was not taken over, and why
};

/// What is known of a library besides its cards.
struct ForeignLibrary {
    std::string origin;  ///< in words
    std::string license; ///< of cards that say none
};

inline constexpr std::size_t maxSkillBytes = std::size_t{1} << 20;
inline constexpr std::size_t maxCardFileBytes = std::size_t{32} << 20;
inline constexpr std::size_t maxForeignCards = 10'000;

/// A SKILL.md: KLineage's flat form (skill_id, intent, preconditions, scope) or the Agent Skills standard (name, description). Its
/// code blocks become the carrier. folder: what to call a card that has no name.
[[nodiscard]] Result<ForeignCard> readSkillFile(std::string_view text, const std::string &folder,
                                                const ForeignLibrary &library);

/// Rich JSON: a card, an array of cards, or a lineage with its `skills`. Each card or why it cannot be read.
[[nodiscard]] Result<std::vector<Result<ForeignCard>>> readCardJson(std::string_view text,
                                                                    const std::string &fileName,
                                                                    const ForeignLibrary &library);

/// A name as it is accepted here: "TMA.multicast_v2" is "tma-multicast-v2"; "card" when nothing of it is left.
[[nodiscard]] std::string cardNameFrom(std::string_view foreign);
/// "nvidia-sm90a-cuda13" and "Hopper" are "sm90"; what is not known stays as it is, in lower case without blanks.
[[nodiscard]] std::string platformFrom(std::string_view foreign);
/// "CUDA C++" is "cuda"; what is not known stays as it is.
[[nodiscard]] std::string languageFrom(std::string_view foreign);

/// The scope of both KLineage forms: {cases, languages, platforms, prior_actions}.
[[nodiscard]] skills::Scope scopeFrom(const nlohmann::json &scope);
/// Puts code into the card with a file name of its language, the first of the scope's that is known, else the one it looks like.
void setCarrier(ForeignCard &foreign, std::string code);

} // namespace klineage::interop
