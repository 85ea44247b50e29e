// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval/index.h"

namespace klineage::skills::retrieval {

/// Whether a target has what a card needs. What is not known blocks nothing.
enum class Holds : char { Unknown, Yes, No };

/// What a target is to each symbol and set of an index: everything that scoring a shape needs, computed once a query.
struct Likeness {
    Likeness(const Index &index, const Target &target);

    std::vector<double> workload; ///< by workload: 1 the same, below by tags
    std::vector<double> platform; ///< by platform
    bool knowsFamilies = false;   ///< of the target's operator
    std::vector<double>
        familySet; ///< by set of workloads: the families that the operators share, of all that they have
    std::vector<double> caseSet; ///< best of the set, as the following
    std::vector<double> languageSet;
    std::vector<double> platformSet;
    std::vector<double> actionSet;
    std::vector<double> priorChoice;
    std::vector<char> applied;   ///< by action: the target has it
    std::vector<char> features;  ///< by feature: the target has it
    std::vector<char> settled;   ///< by feature: the target has it, or one that implies it
    std::size_t actionCount = 0; ///< different ones of the target
    std::vector<Holds> needs;    ///< by need
};

/// A card that continues a recorded lineage from where the target stands.
struct PathStep {
    Id card = none;
    double similarity = 0; ///< relatedness of the lineage, divided by distance
    int distance = 1;      ///< 1: the next step
    const Path *path = nullptr;
    Id after = none; ///< action of the last step that the target has; none: it stands at the beginning
};

/// Each card once, by its best lineage; nearest first.
[[nodiscard]] std::vector<PathStep> stepsAlongPaths(const Index &index, const Likeness &likeness,
                                                    const Target &target);

/// Sentences about a shape, for Reason::text.
[[nodiscard]] std::string caseText(const Index &index, const Likeness &likeness, const Target &target,
                                   const Shape &shape);
[[nodiscard]] std::string languageText(const Target &target, const Shape &shape);
[[nodiscard]] std::string platformText(const Index &index, const Likeness &likeness, const Target &target,
                                       const Shape &shape);
[[nodiscard]] std::string priorText(const Index &index, const Likeness &likeness, const Shape &shape);
[[nodiscard]] std::string pathText(const Index &index, const PathStep &step);

/// The rules that keep a shape's cards out, as sentences; empty: none.
[[nodiscard]] std::vector<std::string> brokenRules(const Index &index, const Likeness &likeness,
                                                   const Target &target, const Shape &shape, bool hypotheses);
/// The same without the sentences.
[[nodiscard]] bool keepsContract(const Index &index, const Likeness &likeness, const Contract &contract);
/// Whether the code has all that cards of the contract provide, which is something.
[[nodiscard]] bool isProvided(const Index &index, const Likeness &likeness, const Contract &contract);
/// Of a shape that is bound to its languages: whether one of them is the target's, as far as that is known.
[[nodiscard]] bool keepsLanguage(const Likeness &likeness, const Target &target, const Shape &shape);

} // namespace klineage::skills::retrieval
