// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/kernel/surfaces/surface.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::skills {

/// A citation of evidence: "gemm/sm90/K03" (the transition into K03), "gemm/sm90/R03a" (a rejected attempt) or "trial:<id>".
using Citation = std::string;

/// An effect in figures (format 2): the interval of a paired comparison of a trial. Admission judges these, and no number in a text.
struct Measured {
    std::string trial;   ///< 16 hex digits: the figures are those of this trial
    std::string against; ///< "parent", or the name of a reference
    double factor = 0;   ///< T_against / T
    double low = 0;
    double high = 0;
    friend bool operator==(const Measured &, const Measured &) = default;
};

/// One claim of a card with the evidence it rests on.
struct Claim {
    std::string text;
    std::vector<Citation> evidence;
    std::string when{};                 ///< preconditions and triggers: the condition that can be evaluated
    std::optional<Measured> measured{}; ///< effects
    std::string id{};                   ///< risks: what a probe names it by
    friend bool operator==(const Claim &, const Claim &) = default;
};

/// What the card cannot do without: a hard block of retrieval, with the reason. Words of core/skills/vocabulary.toml.
struct Capability {
    std::vector<std::string> features; ///< all of them: "sm_90a", "tma", "cpu"
    std::vector<std::string> dtypes;   ///< of an input, one of them; empty: any
    std::vector<std::string> families; ///< of the operator, one of them; empty: any
    std::string toolchain;             ///< for people: "NVRTC 12.0 or later"
    friend bool operator==(const Capability &, const Capability &) = default;
};

/// A value that was tried, with what it brought; figures as in Measured.
struct TriedValue {
    double value = 0;
    Measured measured;
    friend bool operator==(const TriedValue &, const TriedValue &) = default;
};

/// A number of the step that may be chosen.
struct Parameter {
    std::string name;
    std::string text;
    std::vector<double> values; ///< the range, as the values that make sense
    double preset = 0;          ///< key `default`
    std::vector<TriedValue> tried;
    friend bool operator==(const Parameter &, const Parameter &) = default;
};

/// A precondition that was violated on purpose, and what the gate said.
struct Probe {
    std::string risk;     ///< id of the risk it is about
    std::string text;     ///< what was violated
    std::string trial;    ///< 16 hex digits
    std::string verdict;  ///< the gate's status, or its change against the parent
    bool refutes = false; ///< the risk did not show
    friend bool operator==(const Probe &, const Probe &) = default;
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

/// Where a card came from that was not lifted here: a hypothesis whose evidence, where it had any, is of another place.
struct Imported {
    std::string form;    ///< "klineage-skill", "klineage-json", "agent-skill"
    std::string origin;  ///< whose library it is, in words
    std::string name;    ///< the card's name there
    std::string license; ///< as it is said there; "unknown": nobody says
    std::string sha256;  ///< of what it was read from
    friend bool operator==(const Imported &, const Imported &) = default;
};

/// (ι, anchor, carrier, pre, effect, evidence, risk, scope, ver) plus feature contracts. skills/<name>/card.toml
struct Card {
    std::string name;     ///< folder name: isCardName()
    int revision = 1;     ///< raised by every saved edit
    std::string category; ///< action category of the transitions it was lifted from
    std::string locus;
    Claim intent;
    Claim anchor;
    std::vector<std::string>
        anchorWords; ///< identifiers, of which one has to be in the code; empty: any code
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

    int format = 1; ///< 2: the following are there, and two held-out targets admit
    Capability capability;
    std::vector<Parameter> parameters;
    std::vector<Claim> triggers; ///< when it pays, as preconditions say when it is sound
    std::vector<Probe> probes;
    std::string
        buildingBlockFile; ///< "building_block.cu", "building_block.cl": device functions that compile alone

    std::optional<Imported> imported; ///< empty: of this library

    friend bool operator==(const Card &, const Card &) = default;
};

/// What may be done with the card: of an imported one what its source says, else this library's.
[[nodiscard]] std::string licenseOf(const Card &card);

/// "carrier.cu": the carrier's file of a card that is written in that language.
[[nodiscard]] std::string carrierName(const kernel::Language &language);

/// "building_block.cu".
[[nodiscard]] std::string buildingBlockName(const kernel::Language &language);

/// What a risk rests on. Believed: nobody has seen it break.
enum class RiskStanding { Believed, Probed, Refuted };
[[nodiscard]] const char *toString(RiskStanding standing); ///< believed probed refuted
/// Probed: a probe shows it, or it cites a rejected attempt. Refuted: a probe did not show it.
[[nodiscard]] RiskStanding standingOf(const Card &card, const Claim &risk);

/// A line of verification.jsonl: one roundtrip, or one attempt of one.
struct Verification {
    std::string time;
    std::string target; ///< "layernorm/pocl/K02"
    std::string trial;
    int cardRevision = 0;
    std::string status; ///< the gate's status
    bool expectedEffectObserved = false;
    bool heldOut = false;
    std::string
        cardHash{};    ///< contentHash() of what the author was given; empty: of the time before it was kept
    std::string run{}; ///< runs/<run> that made it
    std::string reason{}; ///< why the effect was not observed, in a sentence
    double factor = 0;    ///< measured against the target, with its interval; 0: not measured
    double low = 0;
    double high = 0;
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
    std::string buildingBlock{};

    /// Format 1: admitted when a held-out verification succeeded with the effect observed. Format 2: see core/skills/admission.h.
    [[nodiscard]] Life life() const;
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

/// 1 to 64 of [a-z0-9-], no '-' at an end or beside another: what the Agent Skills standard takes.
[[nodiscard]] bool isCardName(std::string_view name);
inline constexpr const char *cardNameRule = "1 to 64 of a-z, 0-9 and '-', which stands between two others";
[[nodiscard]] bool isCitation(
    std::string_view citation); ///< well formed; whether it exists is the workspace's to say

[[nodiscard]] bool isAttempt(std::string_view citation); ///< a rejected one: "gemm/sm90/R03a"

struct LintFinding {
    enum class Severity { Error, Warning };
    Severity severity = Severity::Warning;
    std::string field;
    std::string message;
};

[[nodiscard]] Result<Card> parseCard(std::string_view text, const std::string &fileName);
[[nodiscard]] std::string writeCard(const Card &card);
[[nodiscard]] std::vector<LintFinding> lintCard(const Card &card, std::string_view carrier,
                                                std::string_view buildingBlock = {});
/// The Agent Skills rendering (SKILL.md) of a card.
[[nodiscard]] std::string writeSkillMarkdown(const CardRecord &record);

} // namespace klineage::skills
