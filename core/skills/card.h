// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/surfaces/surface.h"

#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::skills {

/// A citation of evidence: "gemm/sm90/K03" (the transition into K03), "gemm/sm90/R03a" (a rejected attempt) or "trial:<id>".
using Citation = std::string;

/// One claim of a card with the evidence it rests on.
struct Claim {
    std::string text;
    std::vector<Citation> evidence;
    friend bool operator==(const Claim &, const Claim &) = default;
};

/// A feature contract: "shared_tile at k-loop operand load".
struct Feature {
    std::string locus;
    std::string name;
    friend bool operator==(const Feature &, const Feature &) = default;
};

/// Where the card was verified (claimed, while it is a hypothesis).
struct Scope {
    std::vector<std::string> cases;        ///< workloads
    std::vector<std::string> languages;    ///< "cuda", "opencl"
    std::vector<std::string> platforms;    ///< "sm90", "pocl"
    std::vector<std::string> priorActions; ///< categories that were already applied
    friend bool operator==(const Scope &, const Scope &) = default;
};

enum class Life { Hypothesis, Admitted, Retired };
[[nodiscard]] const char *toString(Life life);

/// (ι, anchor, carrier, pre, effect, evidence, risk, scope, ver) plus feature contracts. skills/<name>/card.toml
struct Card {
    std::string name;     ///< folder name, [a-z0-9-], at most 64
    int revision = 1;     ///< raised by every saved edit
    std::string category; ///< action category of the transitions it was lifted from
    std::string locus;
    Claim intent;
    Claim anchor;
    std::vector<Claim> preconditions;
    std::vector<Claim> effects;
    std::vector<Claim> risks;
    Scope scope;
    std::vector<Feature> provides;
    std::vector<Feature> requirements; ///< key `requires` in the file
    std::vector<Feature> conflicts;
    std::vector<Citation> evidence; ///< transitions and attempts the card was lifted from
    std::string carrierFile;        ///< "carrier.cu", "carrier.cl", "carrier.py": see carrierName()
    bool retired = false;

    friend bool operator==(const Card &, const Card &) = default;
};

/// "carrier.cu": the carrier's file of a card that is written in that language.
[[nodiscard]] std::string carrierName(const kernel::Language &language);

/// A line of verification.jsonl: one roundtrip.
struct Verification {
    std::string time;
    std::string target; ///< "layernorm/pocl/K02"
    std::string trial;
    int cardRevision = 0;
    std::string status; ///< the gate's status
    bool expectedEffectObserved = false;
    bool heldOut = false;
};

enum class ReviewVerdict { Approve, Reject, NeedsEvidence, Edit, Revert, Comment };
[[nodiscard]] const char *toString(
    ReviewVerdict verdict); ///< approve reject needs_evidence edit revert comment

/// A line of reviews.jsonl, append-only. An undo appends a `Revert` that names the event it takes back. A `Comment` judges nothing.
struct Review {
    std::string id;
    std::string time; ///< UTC, ISO 8601
    std::string author;
    int cardRevision = 0;
    ReviewVerdict verdict = ReviewVerdict::NeedsEvidence;
    std::string reason;
    std::string reverts; ///< id of the reverted event
    std::string before;  ///< Edit: the card.toml replaced, so that an edit can be taken back
};

/// A card with its logs, as read from its folder.
struct CardRecord {
    Card card;
    std::string carrier;
    std::vector<Verification> verifications;
    std::vector<Review> reviews;
    std::filesystem::path directory;
    std::vector<std::string> notices; ///< torn lines recovered, generated files out of date

    [[nodiscard]] Life life()
        const; ///< admitted when a held-out verification succeeded with the effect observed
    /// The standing review verdict (reverted events left out), or nullptr when there is none.
    [[nodiscard]] const Review *standingReview() const;
    /// Ids of the events that a standing Revert takes back.
    [[nodiscard]] std::set<std::string> revertedReviews() const;
    /// What an undo would revert: the newest standing event that is no Revert; nullptr when there is none.
    [[nodiscard]] const Review *undoCandidate() const;
    /// What a redo would revert: the newest standing Revert of an undo, unless something new was done since.
    [[nodiscard]] const Review *redoCandidate() const;
};

inline constexpr std::size_t maxCarrierBytes = std::size_t{256} << 10;

[[nodiscard]] bool isCardName(std::string_view name); ///< 1 to 64 of [a-z0-9-]
[[nodiscard]] bool isCitation(
    std::string_view citation); ///< well formed; whether it exists is the workspace's to say

struct LintFinding {
    enum class Severity { Error, Warning };
    Severity severity = Severity::Warning;
    std::string field;
    std::string message;
};

[[nodiscard]] Result<Card> parseCard(std::string_view text, const std::string &fileName);
[[nodiscard]] std::string writeCard(const Card &card);
[[nodiscard]] std::vector<LintFinding> lintCard(const Card &card, std::string_view carrier);
/// The Agent Skills rendering (SKILL.md) of a card.
[[nodiscard]] std::string writeSkillMarkdown(const CardRecord &record);

} // namespace klineage::skills
