// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/accelopt/experience.h"

#include "core/talk/figures.h"

#include <algorithm>
#include <cmath>

namespace klineage::policy {

std::vector<Experience> worthwhile(std::vector<Experience> items, std::size_t most)
{
    std::stable_sort(items.begin(), items.end(), [](const Experience &a, const Experience &b) {
        return std::abs(std::log(a.speedup)) > std::abs(std::log(b.speedup));
    });
    std::vector<Experience> chosen;
    std::size_t positive = 0;
    for (Experience &item : items) {
        if (chosen.size() >= most || (item.isPositive && positive >= std::max<std::size_t>(1, most / 2)))
            continue;
        positive += item.isPositive ? 1 : 0;
        chosen.push_back(std::move(item));
    }
    return chosen;
}

void ExperienceMemory::add(Experience item)
{
    m_items.push_back(std::move(item));
    while (m_items.size() > m_capacity)
        m_items.pop_front();
}

std::vector<std::string> ExperienceMemory::lines() const
{
    std::vector<std::string> lines;
    for (const Experience &item : m_items)
        lines.push_back((item.isPositive ? "Worked, " : "Did harm, ") + run::factorText(item.speedup) + ": "
                        + item.summary);
    return lines;
}

} // namespace klineage::policy
