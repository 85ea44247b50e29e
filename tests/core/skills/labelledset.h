// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval.h"

#include <filesystem>
#include <set>
#include <string>
#include <vector>

namespace klineage::tests {

struct LabelledTarget {
    std::string title; ///< "sgemm/pocl after 2 steps"
    skills::Target target;
    std::set<std::string> relevant;
};

/// tests/data/retrieval: a frozen library, its lineages, and targets with the cards that are relevant to each.
struct LabelledSet {
    std::vector<skills::CardRecord> library;
    std::vector<skills::LineagePath> paths;
    std::vector<skills::WorkloadTags> workloads;
    std::vector<LabelledTarget> targets;
};

/// Throws std::exception on any mistake in the files: this is a test's input.
[[nodiscard]] LabelledSet readLabelledSet(const std::filesystem::path &folder,
                                          const std::string &file = "labels.toml");

/// A relevant card that is not among the first, as many as are relevant, and the best card that lies before it and is not relevant.
struct Misranked {
    std::string title; ///< of the target
    std::string late;
    std::string early;
    double lateScore = 0; ///< 0 of one that was not taken at all
    double earlyScore = 0;
    std::string why; ///< what the scores differ by, largest first: "platform +1.50, workload -0.30"
};

/// Means over the targets that have a relevant card, 0…1.
struct Figures {
    double recallAt8 = 0;            ///< of the relevant cards, how many are among the first eight
    double precisionAtR = 0;         ///< of as many first cards as are relevant, how many are
    double precision = 0;            ///< of all cards taken, how many are relevant
    double recall = 0;               ///< of the relevant cards, how many were taken at all
    double taken = 0;                ///< cards a target
    int bare = 0;                    ///< targets without a relevant card
    double takenOfBare = 0;          ///< cards that one of those gets
    std::vector<std::string> misses; ///< "sgemm/pocl after 2 steps: unroll-k-loop"
    std::vector<Misranked> misranked;
};
[[nodiscard]] Figures measure(const LabelledSet &set, const skills::RetrievalIndex &index);

} // namespace klineage::tests
