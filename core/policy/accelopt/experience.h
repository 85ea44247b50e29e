// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

namespace klineage::policy {

/// What came of a plan: the best attempt at it against the program that it was for.
struct Experience {
    int parent = 0;  ///< program
    int program = 0; ///< the attempt
    std::string plan;
    double speedup = 1; ///< paired, over the parent
    bool isPositive = false;
    std::string summary; ///< what the summarizer says of it; the plan itself where there is none
};

/// Where a change begins to teach something.
struct ExperienceBounds {
    double positive = 1.04;     ///< at least so many times as fast
    double negative = 1 / 1.15; ///< slower than so many times
    [[nodiscard]] bool isPositive(double speedup) const { return speedup >= positive; }
    [[nodiscard]] bool isNegative(double speedup) const { return speedup < negative; }
};

/// The items of an iteration that are worth a summary: those that change most on the scale of the logarithm, at most `most`, of
/// which at most half are positive.
[[nodiscard]] std::vector<Experience> worthwhile(std::vector<Experience> items, std::size_t most);

/// The experience memory: the newest items, as many as it holds.
class ExperienceMemory
{
public:
    explicit ExperienceMemory(std::size_t capacity = 0)
        : m_capacity(capacity)
    {}
    void add(Experience item);
    [[nodiscard]] const std::deque<Experience> &items() const { return m_items; }
    /// "Worked, 1.200×: …" or "Did harm, 0.700×: …", the newest last.
    [[nodiscard]] std::vector<std::string> lines() const;

private:
    std::size_t m_capacity;
    std::deque<Experience> m_items;
};

} // namespace klineage::policy
