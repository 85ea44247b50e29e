// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/cardturns.h"
#include "core/policy/chat.h"
#include "core/policy/lineagepolicy.h"
#include "core/policy/search/draws.h"
#include "core/policy/search/options.h"
#include "core/policy/search/population.h"

#include <optional>
#include <set>
#include <variant>

namespace klineage::policy {

/// One question of a search and, once it is observed, what came of it.
struct SearchStep {
    Ask ask;
    int parent = 0;   ///< the program that the author changes; it may have failed
    int place = 0;    ///< island, node of a tree or plan: the policy's own
    int kind = 0;     ///< the policy's own
    std::string plan; ///< the text that readPlan() took
    Outcome outcome;
};

/// What search policies share: questions in batches, the population, the prompt of a step.
///
/// A batch is planned from everything that was observed before it and from nothing else; the answers are looked at when the last of them is
/// there, in the order of the questions. So it makes no difference whether they were observed at once or at the end.
class SearchPolicy : public Policy
{
public:
    [[nodiscard]] Status begin(const Tried &root) final;
    [[nodiscard]] Result<Move> next() final;
    [[nodiscard]] Result<std::string> readPlan(const std::string &block) final;
    void observe(const Outcome &outcome) final;
    [[nodiscard]] std::size_t ahead() const final;

    [[nodiscard]] const Population &population() const { return m_population; }
    /// A line a decision, for people and tests: who was chosen and why, what was learnt, dropped or moved.
    [[nodiscard]] const std::vector<std::string> &trace() const { return m_trace; }

protected:
    SearchPolicy(Problem problem, SearchSettings settings);

    using Batch = std::vector<SearchStep>;
    using Plan = Result<std::variant<Batch, End>>;

    /// The root is there: population and the policy's own beginnings.
    [[nodiscard]] virtual Status rooted() = 0;
    /// At least one question, or why the search is over.
    [[nodiscard]] virtual Plan plan() = 0;
    /// The batch with its outcomes, in order.
    virtual void absorb(const Batch &batch) = 0;
    /// For questions that want one: the line for people, or what is wrong with the text.
    [[nodiscard]] virtual Result<std::string> lookAtPlan(const std::string &block) const;

    /// What the prompt of a step says.
    struct StepText {
        std::string task;       ///< what kind of step this is
        std::string verdict{};  ///< of the program to change; empty: all that trialText() says
        std::string history{};  ///< a section of its own, ended by a blank line; or empty
        std::vector<int> top{}; ///< programs to show, best first
        std::vector<int> diverse{};
        std::string lessons{}; ///< as history
        std::string asked;
        bool withCards = true; ///< texts of cards, where they come with the questions
    };
    /// The question about a program; its parent in the gate is the nearest correct one.
    [[nodiscard]] Result<SearchStep> question(const std::string &action, const std::string &title,
                                              int program, const StepText &text);
    /// Puts a gated candidate into the population; -1 when the answer brought none.
    int take(const SearchStep &step, int island = 0);
    /// "correct, 1.200× its base (gain), 2.100× the root", or what went wrong: a line.
    [[nodiscard]] std::string resultOf(const SearchStep &step, int program) const;
    [[nodiscard]] std::string nameOf(int program) const; ///< "the root", "program 4"
    void note(std::string line) { m_trace.push_back(std::move(line)); }

    [[nodiscard]] const SearchSettings &settings() const { return m_settings; }
    [[nodiscard]] Draws &draws() { return m_draws; }
    [[nodiscard]] const Tried &root() const { return m_population.at(0).tried; }

private:
    void planNext();
    [[nodiscard]] std::size_t promptBytes() const;
    [[nodiscard]] std::string fileOf(int program) const;
    [[nodiscard]] std::string section(const std::string &heading, const std::vector<int> &programs,
                                      std::set<int> &shown, std::size_t &bytes) const;

    Problem m_problem;
    SearchSettings m_settings;
    Draws m_draws;
    std::optional<Chat> m_chat;
    CardTurns m_cardTurns;
    Population m_population;
    std::vector<std::string> m_trace;
    Batch m_batch;
    std::size_t m_asked = 0;    ///< of the batch
    std::size_t m_observed = 0; ///< of the batch
    std::optional<End> m_end;
    std::optional<Error> m_problemOfPlan;
    int m_doneInARow = 0;
    std::string m_doneReason;
};

/// What an author says before the block of its reply: the first line of it, clipped.
[[nodiscard]] std::string changeOf(const std::string &reply);
/// A heading, an entry a line, a blank line; empty without entries.
[[nodiscard]] std::string lessonSection(const std::string &heading, const std::vector<std::string> &lessons);

} // namespace klineage::policy
