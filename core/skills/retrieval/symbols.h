// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
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
        const auto [found, added] = m_ids.emplace(members, static_cast<Id>(size()));
        if (added) {
            m_members.insert(m_members.end(), members.begin(), members.end());
            m_ends.push_back(static_cast<Id>(m_members.size()));
        }
        return found->second;
    }
    /// No more intern() after this: frees what only that needs.
    void close() { m_ids.clear(); }

    [[nodiscard]] std::span<const Id> operator[](Id id) const
    {
        const Id begin = id == 0 ? 0 : m_ends[id - 1];
        return {m_members.data() + begin, m_ends[id] - begin};
    }
    [[nodiscard]] std::size_t size() const { return m_ends.size(); }

private:
    std::vector<Id> m_members;
    std::vector<Id> m_ends;
    std::map<std::vector<Id>, Id> m_ids;
};

} // namespace klineage::skills::retrieval
