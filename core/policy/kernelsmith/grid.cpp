// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/kernelsmith/grid.h"

#include <algorithm>
#include <cmath>

namespace klineage::policy {

int Grid::Range::bin(double value, int bins) const
{
    if (most <= least)
        return 0;
    const double share = (value - least) / (most - least);
    return std::clamp(static_cast<int>(share * bins), 0, bins - 1);
}

Cell Grid::cellOf(const Program &program) const
{
    return {m_complexity.bin(program.complexity, m_bins), m_score.bin(std::log(program.score), m_bins)};
}

bool Grid::isElite(int id) const
{
    return std::any_of(m_elites.begin(), m_elites.end(), [id](const auto &one) { return one.second == id; });
}

Grid Grid::of(const Population &population, const std::vector<int> &members,
              const std::vector<int> &everybody, int bins, double stability)
{
    Grid grid;
    grid.m_bins = bins;
    bool isFirst = true;
    const auto widen = [&isFirst](Range &range, double value) {
        range.least = isFirst ? value : std::min(range.least, value);
        range.most = isFirst ? value : std::max(range.most, value);
    };
    for (const int id : everybody) {
        const Program &program = population.at(id);
        widen(grid.m_complexity, program.complexity);
        widen(grid.m_score, std::log(program.score));
        isFirst = false;
    }
    for (const int id : members) {
        const Program &program = population.at(id);
        const auto [place, isNew] = grid.m_elites.try_emplace(grid.cellOf(program), id);
        if (!isNew && program.score > population.at(place->second).score * (1 + stability))
            place->second = id;
    }
    return grid;
}

} // namespace klineage::policy
