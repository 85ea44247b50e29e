// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/search/population.h"

#include <map>
#include <utility>

namespace klineage::policy {

/// A niche: bins of code complexity and of the overall score, each 0 … bins − 1.
using Cell = std::pair<int, int>;

/// The MAP-Elites grid of an island. Complexity and the logarithm of the score are cut into equal bins between the least and the largest
/// that any program of the search has, so bins move when these do; the grid is made anew from the members each time.
class Grid
{
public:
    /// Ranges from `everybody`. A member takes a cell from the one in it when its score is larger by more than `stability`, a share: what
    /// lies nearer may be noise, and the older one stays.
    [[nodiscard]] static Grid of(const Population &population, const std::vector<int> &members,
                                 const std::vector<int> &everybody, int bins, double stability);

    [[nodiscard]] const std::map<Cell, int> &elites() const { return m_elites; }
    [[nodiscard]] Cell cellOf(const Program &program) const;
    [[nodiscard]] bool isElite(int id) const;

private:
    struct Range {
        double least = 0;
        double most = 0;
        [[nodiscard]] int bin(double value, int bins) const;
    };
    int m_bins = 1;
    Range m_complexity;
    Range m_score;
    std::map<Cell, int> m_elites;
};

} // namespace klineage::policy
