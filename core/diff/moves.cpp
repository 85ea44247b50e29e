// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/diff/moves.h"

#include <algorithm>
#include <unordered_map>

namespace klineage::diff {

namespace {

constexpr std::size_t startsOfLine = 32; // a line that was added more often than this starts no block
constexpr int minimumCharacters = 20;

class MoveFinder
{
public:
    MoveFinder(const std::vector<std::string_view> &leftLines, const std::vector<std::int32_t> &removed,
               const std::vector<std::string_view> &rightLines, const std::vector<std::int32_t> &added)
        : m_leftLines(leftLines)
        , m_rightLines(rightLines)
        , m_removed(removed)
        , m_added(added)
        , m_taken(added.size())
    {
        for (std::size_t j = 0; j < added.size(); ++j) {
            const std::string_view line = right(j);
            if (!line.empty())
                m_starts[line].push_back(j);
        }
    }

    std::vector<Move> find(const std::stop_token &stop)
    {
        std::vector<Move> moves;
        for (std::size_t i = 0; i < m_removed.size() && !stop.stop_requested();) {
            const Candidate best = bestAt(i);
            if (best.count < static_cast<std::size_t>(minimumMovedLines) || !tellsEnough(i, best.count)) {
                ++i;
                continue;
            }
            std::fill_n(m_taken.begin() + static_cast<std::ptrdiff_t>(best.at), best.count, true);
            moves.push_back({m_removed[i], m_added[best.at], static_cast<std::int32_t>(best.count)});
            i += best.count;
        }
        return moves;
    }

private:
    struct Candidate {
        std::size_t at = 0; ///< into m_added
        std::size_t count = 0;
    };

    std::string_view left(std::size_t i) const
    {
        return trimmed(m_leftLines[static_cast<std::size_t>(m_removed[i])]);
    }
    std::string_view right(std::size_t j) const
    {
        return trimmed(m_rightLines[static_cast<std::size_t>(m_added[j])]);
    }

    Candidate bestAt(std::size_t i) const
    {
        Candidate best;
        const auto found = m_starts.find(left(i));
        if (found == m_starts.end() || found->second.size() > startsOfLine)
            return best;
        for (const std::size_t j : found->second) {
            const std::size_t count = lengthOfRun(i, j);
            if (count > best.count)
                best = {j, count};
        }
        return best;
    }

    std::size_t lengthOfRun(std::size_t i, std::size_t j) const
    {
        std::size_t count = 0;
        while (i + count < m_removed.size() && j + count < m_added.size() && !m_taken[j + count]
               && m_removed[i + count] == m_removed[i] + static_cast<std::int32_t>(count)
               && m_added[j + count] == m_added[j] + static_cast<std::int32_t>(count)
               && left(i + count) == right(j + count))
            ++count;
        return count;
    }

    bool tellsEnough(std::size_t i, std::size_t count) const
    {
        int characters = 0;
        for (std::size_t k = 0; k < count && characters < minimumCharacters; ++k)
            characters += wordCharacters(left(i + k));
        return characters >= minimumCharacters;
    }

    const std::vector<std::string_view> &m_leftLines;
    const std::vector<std::string_view> &m_rightLines;
    const std::vector<std::int32_t> &m_removed;
    const std::vector<std::int32_t> &m_added;
    std::vector<bool> m_taken; ///< by index into m_added
    std::unordered_map<std::string_view, std::vector<std::size_t>> m_starts;
};

} // namespace

std::vector<Move> findMoves(const std::vector<std::string_view> &leftLines,
                            const std::vector<std::int32_t> &removed,
                            const std::vector<std::string_view> &rightLines,
                            const std::vector<std::int32_t> &added, const std::stop_token &stop)
{
    return MoveFinder(leftLines, removed, rightLines, added).find(stop);
}

} // namespace klineage::diff
