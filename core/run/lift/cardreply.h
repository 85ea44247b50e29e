// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/lift/group.h"

#include <string>
#include <vector>

namespace klineage::run {

/// What the author lifted: a card without what is not the author's to say (category, scope, revision), or why there is none.
struct LiftedCard {
    std::string declined; ///< why the transitions hold nothing for others; then the rest is empty
    std::string
        sameAs; ///< the card of the library that says this already; then only new effects and risks are there
    skills::Card card;
    std::string carrier;
    std::string buildingBlock; ///< of a card of format 2; may be empty
};

/// The TOML of a reply; strict. The category, the scope, the carrier's file name and the evidence come from the group: its
/// transitions, and those of its rejected attempts that the card cites. format: of the card; 2 has capability, triggers, parameters, a
/// building block, and figures of effects and values, which are filled in from the trial that the author names.
[[nodiscard]] Result<LiftedCard> parseLiftedCard(const std::string &toml, const LiftGroup &group,
                                                 const std::vector<KnownCard> &library, int format = 1);

/// Why the card cannot be stored, one sentence each: claims that cite nothing, citations that were not given, figures that the cited
/// trials do not hold, and errors of the lint.
[[nodiscard]] std::vector<std::string> findingsOf(const LiftedCard &lifted, const LiftGroup &group);

} // namespace klineage::run
