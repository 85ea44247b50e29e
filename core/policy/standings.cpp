// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/standings.h"

#include <algorithm>

namespace klineage::policy {

void Standings::addRoot(const std::string &candidate)
{
    m_entries = {{candidate, {}, 1}};
    m_best = 0;
}

bool Standings::add(const std::string &candidate, const std::string &parent,
                    const gate::Comparison *comparison)
{
    const Entry *from = find(parent);
    if (!from || !comparison || comparison->speedup.value <= 0)
        return false;
    const double score = from->score * comparison->speedup.value;
    const bool gains = comparison->change == gate::Change::Gain && score > best().score;
    m_entries.push_back({candidate, parent, score});
    if (gains)
        m_best = m_entries.size() - 1;
    return gains;
}

bool Standings::settle(const std::string &candidate, const std::string &against,
                       const gate::Comparison &comparison)
{
    const Entry *other = find(against);
    const auto entry = std::find_if(m_entries.begin(), m_entries.end(),
                                    [&](const Entry &one) { return one.candidate == candidate; });
    if (!other || entry == m_entries.end() || comparison.speedup.value <= 0)
        return false;
    entry->score = other->score * comparison.speedup.value;
    entry->parent = against;
    const bool gains = comparison.change == gate::Change::Gain && entry->score > best().score;
    if (gains)
        m_best = static_cast<std::size_t>(entry - m_entries.begin());
    return gains;
}

const Standings::Entry *Standings::find(const std::string &candidate) const
{
    const auto found = std::find_if(m_entries.begin(), m_entries.end(),
                                    [&](const Entry &entry) { return entry.candidate == candidate; });
    return found == m_entries.end() ? nullptr : &*found;
}

std::vector<Standings::Entry> Standings::ranking() const
{
    std::vector<Entry> ranked = m_entries;
    const std::string first = best().candidate;
    std::stable_sort(ranked.begin(), ranked.end(), [&](const Entry &a, const Entry &b) {
        if ((a.candidate == first) != (b.candidate == first))
            return a.candidate == first;
        return a.score > b.score;
    });
    return ranked;
}

std::vector<Standings::Entry> Standings::contenders(double share, std::size_t most) const
{
    std::vector<Entry> near;
    for (const Entry &entry : ranking()) {
        const bool paired = entry.parent == best().candidate || best().parent == entry.candidate;
        if (entry.candidate != best().candidate && !entry.parent.empty() && !paired
            && entry.score > best().score * (1 - share) && near.size() < most)
            near.push_back(entry);
    }
    return near;
}

} // namespace klineage::policy
