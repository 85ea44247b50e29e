// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval.h"

namespace klineage::skills {

/// A card of a chain, and what has to be applied before it.
struct Link {
    Retrieved retrieved;
    int round = 1; ///< 1: the code is ready for it as it stands
    std::vector<std::string>
        after; ///< cards of earlier rounds; those that provide what it requires, when it requires something
};

struct Chain {
    std::vector<Link> taken;      ///< by round, best first within one
    std::vector<Blocked> blocked; ///< of the last round: what nothing of the chain makes ready
};

/// What the target is ready for, then what it is ready for once those cards are applied, and so on until nothing is added: a chain
/// of requirements arrives whole. After the first round a card is taken only when its language, platform or path is the target's:
/// after a few cards everything has prior actions in common with something.
[[nodiscard]] Chain retrieveChain(const RetrievalIndex &index, const std::vector<CardRecord> &library,
                                  const Target &target, const RetrievalOptions &options, std::size_t most);

} // namespace klineage::skills
