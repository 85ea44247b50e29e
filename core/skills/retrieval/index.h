// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval.h"
#include "core/skills/retrieval/symbols.h"

#include <compare>
#include <cstdint>

namespace klineage::skills {

namespace retrieval {

enum class Standing : std::uint8_t { Admitted, Hypothesis, Retired, Rejected };

/// What queries can tell cards apart by. Cards that agree in all of it are one shape, which is scored once: the index is an inverted
/// one from shapes to cards, and a query looks at shapes, never at every card.
struct Shape {
    Id cases = 0;     ///< set of workloads
    Id languages = 0; ///< set of languages
    Id platforms = 0; ///< set of platforms
    Id places =
        0; ///< set of places: what was verified where; none where it is all workloads on all platforms
    Id priors = 0; ///< set of sets of actions: of each state it was verified in
    Id contract = 0;
    Standing standing = Standing::Hypothesis;
    bool isBound = false; ///< to its languages
    Id firstCard = 0;     ///< in Index::postings
    Id cardCount = 0;
};

/// Shapes that agree in all but priors, contract and standing: most of them are passed over together.
struct Group {
    Id cases = 0;
    Id languages = 0;
    Id platforms = 0;
    Id firstShape = 0;
    Id shapeCount = 0;
};

/// Sets of features, and of what format 2 needs: see retrieval/needs.h.
struct Contract {
    Id required = 0;
    Id provided = 0;
    Id conflicting = 0;
    Id allOf = 0;    ///< of Index::needSets: capabilities and preconditions
    Id families = 0; ///< of these and the following one is enough
    Id dtypes = 0;
    Id languages = 0;
    Id words = 0;
    Id triggers = 0;

    friend auto operator<=>(const Contract &, const Contract &) = default;
};

struct Path {
    std::string lineage;
    Id workload = none;
    Id platform = none;
    std::vector<Id> cards;      ///< none: the step has no card in the library
    std::vector<Id> categories; ///< actions
};

struct Index {
    Symbols workloads;
    Symbols languages;
    Symbols platforms;
    Symbols actions;
    Symbols features; ///< "shared_tile at k-loop operand load", normalized
    Symbols tags;
    Symbols needs; ///< "capability:sm_90a", "when:K % 8 == 0"

    std::vector<std::pair<Id, Id>> places; ///< a workload on a platform

    Sets caseSets;
    Sets languageSets;
    Sets platformSets;
    Sets placeSets;
    Sets actionSets;
    Sets priorChoices; ///< of actionSets
    Sets featureSets;
    Sets tagSets;
    Sets needSets;

    Symbols families;                              ///< of operators
    std::vector<Id> tagsOfWorkload;                ///< by workload; none: not known
    std::vector<std::uint64_t> familiesOfWorkload; ///< by workload: a bit of each of `families`; 0: not known
    std::vector<Contract> contracts;
    std::vector<Shape> shapes; ///< by group
    std::vector<Group> groups;
    std::vector<Id> groupOfShape;
    std::vector<Id> shapesByPriors; ///< inverted: the shapes of each priorChoices, one after the other
    std::vector<Id> endByPriors;
    std::vector<Id> postings; ///< cards, by shape, each shape's by name
    std::vector<Id> shapeOfCard;
    std::string names; ///< of all cards, sorted, one after the other
    std::vector<Id> nameEnds;
    std::vector<Path> paths;

    [[nodiscard]] std::string_view name(Id card) const;
    [[nodiscard]] Id findCard(std::string_view cardName) const; ///< none when there is none
};

/// Of one of Index::families; those beyond the 64th, of which there are none, are left out.
[[nodiscard]] constexpr std::uint64_t familyBit(Id family)
{
    return family < 64 ? std::uint64_t{1} << family : 0;
}

[[nodiscard]] std::string featureText(const Feature &feature);   ///< "name at locus", by the vocabulary
[[nodiscard]] std::string actionText(std::string_view category); ///< by the vocabulary

} // namespace retrieval

struct RetrievalIndex::Private {
    retrieval::Index index;
};

} // namespace klineage::skills
