// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

#include <vector>

namespace klineage::policy {

/// A candidate of a search, whatever its verdict. Programs are numbered as they come; the root is 0.
struct Program {
    int id = 0;
    int parent = -1; ///< the program that it was made from; it may have failed
    int base =
        -1; ///< the correct program that the gate timed it against: the parent, or the nearest correct one above
    int generation = 0; ///< steps from the root
    int island = 0;     ///< where it was born
    Tried tried;
    std::string change; ///< what its author says of it, a line
    double score =
        0; ///< paired gains along its bases down to the root, whose score is 1; 0: not correct, or not measured
    bool gains = false;    ///< a certain gain over its base
    double complexity = 0; ///< bytes of code without comments and blanks

    [[nodiscard]] bool isCorrect() const { return score > 0; }
};

/// All programs of a search. A ratio to a reference is measured anew in every trial, and the largest of many is the luckiest one; so a
/// program's score is its base's times the paired speedup over it, as in Standings.
class Population
{
public:
    void addRoot(const Tried &root);
    /// A gated candidate, made from `parent`. The answer is its number.
    int add(const Tried &tried, int parent, int island, std::string change);

    [[nodiscard]] const Program &at(int id) const { return m_programs[static_cast<std::size_t>(id)]; }
    [[nodiscard]] int size() const { return static_cast<int>(m_programs.size()); }
    /// The program itself when it is correct, otherwise the nearest correct one above.
    [[nodiscard]] int baseFor(int id) const;
    /// The correct ones of `ids`, largest score first, then the earlier; at most `most`.
    [[nodiscard]] std::vector<int> best(std::vector<int> ids, std::size_t most) const;
    /// Of all programs.
    [[nodiscard]] std::vector<int> best(std::size_t most) const;

private:
    std::vector<Program> m_programs;
};

} // namespace klineage::policy
