// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace klineage::skills::retrieval {

using Id = std::uint32_t;
inline constexpr Id none = 0xffffffffu;

/// Each different text once, as a number from 0.
class Symbols
{
public:
    Id intern(std::string_view text)
    {
        const auto found = m_ids.find(text);
        if (found != m_ids.end())
            return found->second;
        const Id id = static_cast<Id>(m_texts.size());
        m_texts.emplace_back(text); // a deque never moves its elements, so that the keys may look into them
        m_ids.emplace(m_texts.back(), id);
        return id;
    }
    [[nodiscard]] Id find(std::string_view text) const
    {
        const auto found = m_ids.find(text);
        return found == m_ids.end() ? none : found->second;
    }
    [[nodiscard]] const std::string &text(Id id) const { return m_texts[id]; }
    [[nodiscard]] std::size_t size() const { return m_texts.size(); }

private:
    std::deque<std::string> m_texts;
    std::unordered_map<std::string_view, Id> m_ids;
};

/// Each different set of numbers once, sorted, as a number from 0.
class Sets
{
public:
    Id intern(std::vector<Id> members)
    {
        std::sort(members.begin(), members.end());
        members.erase(std::unique(members.begin(), members.end()), members.end());
        std::uint64_t hash = 0;
        for (const Id member : members)
            hash = (hash ^ member) * 0x9e3779b97f4a7c15u;
        const auto [first, last] = m_ids.equal_range(hash);
        for (auto at = first; at != last; ++at) {
            const std::span<const Id> known = (*this)[at->second];
            if (std::equal(known.begin(), known.end(), members.begin(), members.end()))
                return at->second;
        }
        const Id id = static_cast<Id>(size());
        m_members.insert(m_members.end(), members.begin(), members.end());
        m_ends.push_back(static_cast<Id>(m_members.size()));
        m_ids.emplace(hash, id);
        return id;
    }
    /// No more intern() after this: frees what only that needs.
    void close() { m_ids = {}; }

    [[nodiscard]] std::span<const Id> operator[](Id id) const
    {
        const Id begin = id == 0 ? 0 : m_ends[id - 1];
        return {m_members.data() + begin, m_ends[id] - begin};
    }
    [[nodiscard]] std::size_t size() const { return m_ends.size(); }

private:
    std::vector<Id> m_members;
    std::vector<Id> m_ends;
    std::unordered_multimap<std::uint64_t, Id> m_ids; ///< by hash: the members are kept once
};

} // namespace klineage::skills::retrieval
