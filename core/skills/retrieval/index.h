// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval.h"
#include "core/skills/retrieval/symbols.h"

namespace klineage::skills {

namespace retrieval {

enum class Standing : std::uint8_t { Admitted, Hypothesis, Retired, Rejected };

/// What queries can tell cards apart by. Cards that agree in all of it are one shape, which is scored once: the index is an inverted
/// one from shapes to cards, and a query looks at shapes, never at every card.
struct Shape {
    Id cases = 0;     ///< set of workloads
    Id languages = 0; ///< set of languages
    Id platforms = 0; ///< set of platforms
    Id priors = 0;    ///< set of sets of actions: of each state it was verified in
    Id contract = 0;
    Standing standing = Standing::Hypothesis;
    Id firstCard = 0; ///< in Index::postings
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

/// Sets of features.
struct Contract {
    Id required = 0;
    Id provided = 0;
    Id conflicting = 0;
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

    Sets caseSets;
    Sets languageSets;
    Sets platformSets;
    Sets actionSets;
    Sets priorChoices; ///< of actionSets
    Sets featureSets;
    Sets tagSets;

    std::vector<Id> tagsOfWorkload; ///< by workload; none: not known
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

[[nodiscard]] std::string featureText(const Feature &feature); ///< "name at locus", normalized

} // namespace retrieval

struct RetrievalIndex::Private {
    retrieval::Index index;
};

} // namespace klineage::skills
