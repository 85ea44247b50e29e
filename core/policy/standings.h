// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/verdict.h"

#include <cstddef>
#include <string>
#include <vector>

namespace klineage::policy {

/// Which candidate of a run is the best. A ratio to a reference is measured anew in every trial, under other conditions, and the largest
/// of many such ratios is the luckiest one; a paired comparison with the parent is not. So a candidate's score is its parent's
/// times the paired speedup over it, the root's is 1, and a new best has to be a certain gain over its parent too.
class Standings
{
public:
    struct Entry {
        std::string candidate; ///< sha-256
        std::string parent;    ///< sha-256; empty: the root
        double score = 1;
    };

    void addRoot(const std::string &candidate);
    /// A correct candidate; comparison: with its parent, nullptr when it was not measured. Whether it is the new best.
    bool add(const std::string &candidate, const std::string &parent, const gate::Comparison *comparison);
    /// The candidate was paired with another one once more: what is nearer to certain moves the best. Whether the best has changed.
    bool settle(const std::string &candidate, const std::string &against, const gate::Comparison &comparison);

    [[nodiscard]] const Entry *find(const std::string &candidate) const;
    [[nodiscard]] const Entry &best() const { return m_entries[m_best]; }
    /// Best first, then by score.
    [[nodiscard]] std::vector<Entry> ranking() const;
    /// Those that noise may have kept from the first place: within `share` of its score, and never paired with the best. Nearest
    /// first, at most `most`.
    [[nodiscard]] std::vector<Entry> contenders(double share, std::size_t most) const;

private:
    std::vector<Entry> m_entries;
    std::size_t m_best = 0;
};

} // namespace klineage::policy
