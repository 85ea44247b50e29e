// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace klineage::skills {

/// What cards are wanted for: T = (c, l, p, d), and the features that the code has already.
struct Target {
    std::string workload; ///< c: the workload's name
    std::vector<std::string>
        workloadTags;     ///< oracle name, dtypes, roles: for similarity of cases that were never verified
    std::string language; ///< l: "cuda", "opencl"
    std::string platform; ///< p: "sm90", "pocl"
    std::vector<std::string> priorActions; ///< d: categories that were applied already; one twice when it was
    std::vector<Feature> features;         ///< what the code provides at which locus

    // What capability, preconditions and triggers of format 2 are held against; what is left out is not known and blocks nothing.
    // describe() and describeCode() in core/skills/retrieval/sources.h fill them in.
    std::vector<std::string> families;    ///< of the operator
    std::vector<std::string> dtypes;      ///< of its inputs
    std::vector<std::string> words;       ///< identifiers of the code
    std::vector<std::string> abilities;   ///< of the device, beside what the vocabulary knows of the platform
    std::map<std::string, double> values; ///< what conditions may name: axes, sizes, metrics
};

enum class Dimension { Case, Language, Platform, PriorActions, Path };
[[nodiscard]] const char *toString(Dimension dimension); ///< case language platform prior_actions path

/// Why a card was taken by one dimension.
struct Reason {
    Dimension dimension = Dimension::Case;
    double similarity = 0; ///< 0…1
    int rank = 0;          ///< 1…k in that dimension
    std::string text;      ///< one sentence: "verified on sgemm, the same workload"
};

/// What a card's place in the order is made of, weighted.
struct Score {
    double workload = 0;
    double language = 0;
    double platform = 0;
    double priorActions = 0;
    double family = 0;       ///< of the operator
    double continuation = 0; ///< it goes on from what the code has
    double path = 0;         ///< it is a step of a lineage
    double alternative = 0;  ///< a better card provides the same

    [[nodiscard]] double sum() const
    {
        return workload + language + platform + priorActions + family + continuation + path + alternative;
    }
};

struct Retrieved {
    std::string card;
    double score = 0; ///< the sum of its parts, for the order only
    std::vector<Reason> reasons;
    Score parts;
};

/// A card that a dimension took and a rule left out.
struct Blocked {
    std::string card;
    std::vector<Reason> reasons; ///< why it would have been taken
    std::vector<std::string>
        rules; ///< sentences: "requires shared_tile at k-loop operand load, which the code does not provide"
    bool isThere = false; ///< nothing but that the code has it already keeps the card out
};

struct Retrieval {
    std::vector<Retrieved> taken; ///< best first
    std::vector<Blocked> blocked; ///< nearest first
};

struct RetrievalOptions {
    int perDimension = 8; ///< k of the union of top-k
    bool hypotheses =
        false; ///< also cards that no roundtrip has admitted, by their claimed scope (said in the reason)
    int mostBlocked = 16;
};

/// A step along a recorded lineage: cards in the order in which the lineage applied them.
struct LineagePath {
    std::string lineage; ///< "gemm/sm90"
    std::string workload;
    std::string platform;
    std::vector<std::string> cards;      ///< one a step; empty where the step has none
    std::vector<std::string> categories; ///< of the same steps
    std::vector<std::string> states;     ///< ids that the steps lead to: "K01", …; may be left out
};

/// What a workload is like, in words that others may share: core/skills/retrieval/sources.h makes them.
struct WorkloadTags {
    std::string workload;
    std::vector<std::string> tags;
};

/// An immutable index over a library. Building reads nothing but its arguments, which need not outlive it; find() is
/// thread-safe. Bars: 100,000 cards, p99 of find() <= 5 ms, at most 300 MB.
///
/// A dimension takes the k cards that are nearest in it, of equally near ones those that are nearest in sum. A card that a rule
/// blocks takes no place: it is listed as a near miss when it lies before the last card taken. The rules: what it requires is
/// there, not all that it provides is there already, nothing that it conflicts with is there, it was admitted (unless
/// options.hypotheses), it is neither retired nor rejected by the standing review, and what format 2 asks for is not known to be
/// missing: capability, family, types, language, words of the anchor, preconditions and triggers that can be evaluated.
class RetrievalIndex
{
public:
    explicit RetrievalIndex(const std::vector<CardRecord> &library, std::vector<LineagePath> paths = {},
                            const std::vector<WorkloadTags> &workloads = {});
    ~RetrievalIndex();
    RetrievalIndex(RetrievalIndex &&) noexcept;
    RetrievalIndex &operator=(RetrievalIndex &&) noexcept;

    [[nodiscard]] Retrieval find(const Target &target, const RetrievalOptions &options = {}) const;
    [[nodiscard]] std::size_t size() const;

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

/// What a card was verified on: workloads and platforms of the successful verifications in its log, the languages of those
/// platforms; widened only by new trials. A log line names no prior actions: they are those of the target's state when its lineage
/// is among the paths, otherwise the card's own. Empty without a success.
[[nodiscard]] Scope verifiedScope(const CardRecord &record, const std::vector<LineagePath> &paths = {});

} // namespace klineage::skills
