// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <array>
#include <set>

namespace klineage::tests {

/// A kernel that exists only as a list of edits, with an author and a gate that know nothing else: no model, no device, no clock. What an
/// edit does is drawn from the seed: five gain by themselves, two pairs gain only together, one always breaks the result, one never
/// compiles, and one gains but keeps two of the others out, a dead end. The author picks edits by what the prompt says of them, slips
/// now and then, and is a function of the question alone.
class SimulatedWorld
{
public:
    static constexpr int editCount = 12;

    explicit SimulatedWorld(std::uint64_t seed);

    [[nodiscard]] std::string root() const;
    [[nodiscard]] std::string answer(const llm::Request &request) const;
    /// Against an empty parent there is no comparison.
    [[nodiscard]] gate::Trial gate(const std::string &text, const std::string &parent) const;

    /// Without noise, over the root; 0: not correct.
    [[nodiscard]] double speedup(const std::string &text) const;
    [[nodiscard]] double optimum() const { return m_optimum; }

private:
    enum class Fate { Fine, Wrong, NoCompile };
    struct Program {
        std::set<int> edits;
        std::string slip; ///< "compile x17", "wrong x17"; empty: none
    };
    class Reader;

    [[nodiscard]] static Program parse(std::string_view text);
    [[nodiscard]] std::string write(const Program &program) const;
    [[nodiscard]] Fate fateOf(const Program &program) const;
    [[nodiscard]] double factorOf(const std::set<int> &edits) const;

    std::uint64_t m_seed;
    std::array<double, editCount> m_factor{};
    std::array<int, editCount> m_order{}; ///< role -> edit
    double m_optimum = 1;
};

/// What a policy came to in a simulated world.
struct SimulatedRun {
    int questions = 0;
    double best = 1;                  ///< true speedup over the root of the best candidate
    int toNinety = 0;                 ///< questions until 90 % of the optimum's speedup; 0: never
    std::string end;                  ///< why the policy ended; empty: it did not
    std::vector<std::string> prompts; ///< "action|title|question", one a question
    std::map<std::string, int> actions;
    std::size_t furthestAhead = 0; ///< most questions asked in a row
};

/// Asks at most so many questions. batched: as many in a row as the policy allows, then all answers; otherwise one by one.
[[nodiscard]] SimulatedRun play(policy::Policy &policy, const SimulatedWorld &world, int questions,
                                bool batched = false);
/// A problem of the world, with options.
[[nodiscard]] policy::Problem problemOf(std::uint64_t seed, std::map<std::string, std::string> options = {});

} // namespace klineage::tests
