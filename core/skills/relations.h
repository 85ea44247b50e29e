// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::skills {

/// What a card's contracts have to do with those of others; features are compared as retrieval does: at their locus, in lower case.
struct Relation {
    enum class Kind {
        Requires,     ///< cards: those that provide it
        Provides,     ///< cards: those that require it
        Conflicts,    ///< cards: those that provide what this one has a conflict with
        ConflictedBy, ///< cards: those that have a conflict with what this one provides
    };
    Kind kind = Kind::Requires;
    Feature feature;
    std::vector<std::string> cards; ///< by name, without the card itself
};

/// In the order of the kinds, and of the card's features; of ConflictedBy only those that some card has.
[[nodiscard]] std::vector<Relation> relationsOf(const std::vector<CardRecord> &library, const Card &card);

/// Cards around one, as far as contracts lead from it: what has to be applied before it and what it makes possible.
struct Surroundings {
    struct Node {
        std::string card;
        int column = 0; ///< −hops … hops: the card itself at 0, before it what it requires
    };
    struct Edge {
        std::size_t from = 0; ///< index of the node that provides
        std::size_t to = 0;   ///< of the one that requires
    };
    std::vector<Node> nodes; ///< the card itself first, then hop by hop, by name
    std::vector<Edge> edges; ///< between nodes of neighbouring columns
};
/// A card is where it was met first; retired cards and the other branches of a neighbour are left out.
[[nodiscard]] Surroundings surroundingsOf(const std::vector<CardRecord> &library, std::string_view card,
                                          int hops);

} // namespace klineage::skills
