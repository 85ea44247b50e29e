// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/llm/message.h"
#include "core/trial/trial.h"

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <variant>
#include <vector>

/// Search policies behind one interface: given what has happened, what to ask next. A policy is a deterministic function of its
/// problem and of what it observes; it sends nothing, gates nothing and reads no files. So the same record leads to the same prompts,
/// and every policy has the same gate, the same meter and the same steps.
namespace klineage::policy {

/// A card as it goes into prompts: read once, when the run begins.
struct LoadedCard {
    std::string name;
    std::string intent;  ///< its text alone
    std::string text;    ///< cardText()
    std::string index{}; ///< indexLine()
};

/// Whether prompts begin with a line for each card and give the text of a card when it is asked for or applied (option "card_text" =
/// "index"), and not with all texts ("full", and where nothing is said, as runs of earlier versions did).
[[nodiscard]] bool showsIndex(const std::map<std::string, std::string> &options);

/// What a run works on; the same from its first step to its last.
struct Problem {
    std::string workload;     ///< name
    std::string workloadText; ///< workload.toml
    kernel::Surface surface;
    std::string platform;
    std::string rootName;          ///< "sgemm/pocl/K00"
    std::vector<LoadedCard> cards; ///< in the order of retrieval; empty for policies without
    std::vector<std::string>
        present{}; ///< names of cards that the root shows already: they are named, not shown
    std::uint64_t seed = 0;
    std::map<std::string, std::string>
        options; ///< numbers: "patience", "repairs", "chat_bytes", or policyOptions()
};

/// Whether the best follows paired gains (option "best" = "paired"; see standings.h), and not the largest ratio to the reference
/// ("reference", and where nothing is said, as runs of earlier versions did).
[[nodiscard]] bool followsPairs(const std::map<std::string, std::string> &options);

/// How `klineage` and `generated-only` spend their questions (option "moves").
enum class Moves {
    Single, ///< one card a question, from the root on: where nothing is said, as runs of earlier versions did
    Bundles, ///< "bundles": the author's own strongest first, then cards together; a card that is read first costs a question
    OwnFirst, ///< "own-first": the same; what would be read comes with the bundle, and the prompt tells how a plan spells tensor maps
};
[[nodiscard]] Moves movesOf(const std::map<std::string, std::string> &options);

/// Lines that a candidate may change of its parent (option "most_changed_lines"); 0: any number. An author that is limited so has to
/// know what pays, where a strong one writes everything at once.
[[nodiscard]] int mostChangedLines(const std::map<std::string, std::string> &options);

/// A sentence about the cards that the root shows already; empty when there are none.
[[nodiscard]] std::string presentText(const Problem &problem);

/// A candidate that was gated.
struct Tried {
    std::string text;
    gate::Trial trial;
    double speedup = 0; ///< against the run's reference; 0: not measured
};

/// The next question. Model and output limit of the request are the run's to fill in.
struct Ask {
    std::string
        action; ///< "own", "load", "complete", "repair", "replan", "generate", "suggest"; the search policies have their own
    std::string title; ///< one line for people
    llm::Request request;
    std::string baseText; ///< the state that the candidate is made from: its parent in the gate
    std::vector<std::string> cards;
    bool wantsPlan = false; ///< the block of the reply goes to readPlan(), not to the gate
};

struct End {
    std::string reason; ///< one sentence
};

using Move = std::variant<Ask, End>;

/// What came of the last question.
struct Outcome {
    enum class Kind {
        Gated, ///< `tried` holds it, whatever the verdict
        Wrapper, ///< a candidate that does no work of its own: it was gated before, or is suspect; does not count
        NoCandidate, ///< the reply could not be used; `problem` is said back
        Planned,     ///< readPlan() took it
        Done,        ///< the author says that nothing is left; `problem` is its reason
    };
    Kind kind = Kind::NoCandidate;
    std::string reply; ///< the author's words
    std::string problem;
    Tried tried;           ///< Gated; of a suspect Wrapper too
    std::string changes{}; ///< Gated: the unified diff from the question's base to the candidate
    bool improved = false; ///< a new best of the run
};

class Policy
{
public:
    virtual ~Policy() = default;
    /// Called once, first: the root and its trial, which is correct.
    [[nodiscard]] virtual Status begin(const Tried &root) = 0;
    /// What to ask, or that the policy is done. Fails only when a prompt cannot be written.
    [[nodiscard]] virtual Result<Move> next() = 0;
    /// Takes the block of a reply to a question that wantsPlan; one line for people, or what is wrong with it.
    [[nodiscard]] virtual Result<std::string> readPlan(const std::string &block) = 0;
    /// Called once for each question, in the order of the questions; readPlan() before it, where it wants a plan.
    virtual void observe(const Outcome &outcome) = 0;
    /// How many questions next() may be asked for in a row while nothing is unanswered. What comes of them is the same whether each is
    /// observed before the next one is asked for or all of them at the end.
    [[nodiscard]] virtual std::size_t ahead() const { return 1; }
    /// What a candidate breaks of the policy's own rules, a sentence for its author; it is then not gated. Empty: nothing.
    [[nodiscard]] virtual std::string problemOf(const std::string &) const { return {}; }
};

/// "klineage": cards first, then one intent after the other, repair and replan. "generated-only": the same author, format and repair,
/// without cards. "greedy": one suggestion at a time, always from the best, in a new chat each time. The searches of other systems:
/// "kernel-smith", "kernelpro", "adaexplore", "accelopt".
[[nodiscard]] std::vector<std::string> policyNames();
/// The names of the numbers that a policy can be set with, beside those that every materialization has. None for unknown policies.
[[nodiscard]] std::vector<std::string> policyOptions(std::string_view policy);
/// The option "arm" = "none" takes cards from any policy.
[[nodiscard]] bool usesCards(std::string_view policy, const std::map<std::string, std::string> &options);
/// InvalidInput for unknown names and options that are no numbers.
[[nodiscard]] Result<std::unique_ptr<Policy>> makePolicy(const std::string &name, Problem problem);

} // namespace klineage::policy
