// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/admit/effect.h"

#include <algorithm>
#include <cmath>

namespace klineage::run {

namespace {

/// A card that claims a few percent may bring more elsewhere; what brings more than this is another optimization.
constexpr double slightGain = 2;

} // namespace

std::vector<double> typedFactors(const skills::Card &card)
{
    std::vector<double> factors;
    for (const skills::Claim &effect : card.effects) {
        if (effect.measured && effect.measured->against == "parent" && effect.measured->low > 1)
            factors.push_back(effect.measured->factor);
    }
    std::sort(factors.begin(), factors.end());
    return factors;
}

std::string effectShortfall(const std::vector<double> &claimed, const gate::Comparison *comparison)
{
    if (!comparison || comparison->change != gate::Change::Gain)
        return "it does not gain against the kernel that was given";
    if (claimed.empty())
        return {};
    if (comparison->speedup.high < std::sqrt(claimed.front()))
        return "it gains less than half of what the card claims";
    if (comparison->speedup.low > std::max(std::pow(claimed.back(), 2), slightGain))
        return "it gains more than twice what the card claims, so that more was changed than the card says";
    return {};
}

} // namespace klineage::run
