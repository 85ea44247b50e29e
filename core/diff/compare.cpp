// SPDX-License-Identifier: GPL-3.0-or-later
//
// From two texts to aligned rows, in four passes: libgit2 finds the changed blocks; similar lines of each block are paired;
// what stays unpaired is searched for moved blocks; then rows are laid out. Unpaired lines of a gap face each other as Changed rows
// (compareLines() then finds them to differ as a whole) except moved ones, which get rows of their own.
#include "core/diff/changes.h"
#include "core/diff/diff.h"
#include "core/diff/moves.h"
#include "core/diff/pairing.h"

#include <algorithm>

namespace klineage::diff {

namespace {

// A lone brace or empty line between two changes does not make them two.
constexpr std::int32_t bridgedRows = 2;

struct PairedBlock {
    Block block;
    std::vector<LinePair> pairs;
};

class Aligner
{
public:
    Aligner(std::string_view left, std::string_view right, const Options &options, std::stop_token stop)
        : m_leftText(left)
        , m_rightText(right)
        , m_left(splitLines(left))
        , m_right(splitLines(right))
        , m_options(options)
        , m_stop(std::move(stop))
    {}

    Diff run()
    {
        const auto blocks = changedBlocks(m_leftText, m_rightText, m_options.ignoreWhitespace, m_stop);
        if (!blocks)
            return cancelled();
        pairBlocks(*blocks);
        if (m_options.detectMoves)
            markMoves();
        layOut();
        if (m_stop.stop_requested())
            return cancelled();
        findHunks();
        return std::move(m_diff);
    }

private:
    static Diff cancelled()
    {
        Diff diff;
        diff.cancelled = true;
        return diff;
    }

    void pairBlocks(const std::vector<Block> &blocks)
    {
        m_blocks.reserve(blocks.size());
        for (const Block &block : blocks) {
            PairedBlock paired{block, {}};
            if (block.left.count == 1 && block.right.count == 1)
                paired.pairs.emplace_back(block.left.first, block.right.first);
            else if (block.left.count > 0 && block.right.count > 0)
                paired.pairs = pairSimilarLines(m_left, block.left, m_right, block.right, m_stop);
            m_blocks.push_back(std::move(paired));
        }
    }

    void markMoves()
    {
        std::vector<std::int32_t> removed;
        std::vector<std::int32_t> added;
        for (const PairedBlock &paired : m_blocks) {
            std::int32_t left = paired.block.left.first;
            std::int32_t right = paired.block.right.first;
            const auto unpaired = [&](std::int32_t leftEnd, std::int32_t rightEnd) {
                while (left < leftEnd)
                    removed.push_back(left++);
                while (right < rightEnd)
                    added.push_back(right++);
            };
            for (const auto &[pairLeft, pairRight] : paired.pairs) {
                unpaired(pairLeft, pairRight);
                ++left;
                ++right;
            }
            unpaired(paired.block.left.end(), paired.block.right.end());
        }
        const std::vector<Move> moves = findMoves(m_left, removed, m_right, added, m_stop);
        if (moves.empty())
            return;
        m_movedLeft.assign(m_left.size(), -1);
        m_movedRight.assign(m_right.size(), -1);
        for (std::size_t id = 0; id < moves.size(); ++id) {
            std::fill_n(m_movedLeft.begin() + moves[id].left, moves[id].count, static_cast<std::int32_t>(id));
            std::fill_n(m_movedRight.begin() + moves[id].right, moves[id].count,
                        static_cast<std::int32_t>(id));
        }
    }

    void layOut()
    {
        m_diff.rows.reserve(std::max(m_left.size(), m_right.size()) + m_blocks.size());
        for (const PairedBlock &paired : m_blocks) {
            equalUntil(paired.block.left.first);
            for (const auto &[left, right] : paired.pairs) {
                layOutGap(left, right);
                const bool same =
                    m_left[static_cast<std::size_t>(left)] == m_right[static_cast<std::size_t>(right)];
                // The last line of a text without a final newline differs from the same line with one.
                const bool last = left + 1 == static_cast<std::int32_t>(m_left.size())
                                  || right + 1 == static_cast<std::int32_t>(m_right.size());
                push(same && !last ? Row::Kind::Equal : Row::Kind::Changed, m_leftAt++, m_rightAt++);
            }
            layOutGap(paired.block.left.end(), paired.block.right.end());
        }
        equalUntil(static_cast<std::int32_t>(m_left.size()));
    }

    void equalUntil(std::int32_t leftEnd)
    {
        while (m_leftAt < leftEnd)
            push(Row::Kind::Equal, m_leftAt++, m_rightAt++);
    }

    void layOutGap(std::int32_t leftEnd, std::int32_t rightEnd)
    {
        while (m_leftAt < leftEnd || m_rightAt < rightEnd) {
            const std::int32_t movedLeft = m_leftAt < leftEnd ? movedId(m_movedLeft, m_leftAt) : -1;
            const std::int32_t movedRight = m_rightAt < rightEnd ? movedId(m_movedRight, m_rightAt) : -1;
            if (movedLeft >= 0)
                push(Row::Kind::Removed, m_leftAt++, -1, movedLeft);
            else if (movedRight >= 0)
                push(Row::Kind::Added, -1, m_rightAt++, movedRight);
            else if (m_leftAt < leftEnd && m_rightAt < rightEnd)
                push(Row::Kind::Changed, m_leftAt++, m_rightAt++);
            else if (m_leftAt < leftEnd)
                push(Row::Kind::Removed, m_leftAt++, -1);
            else
                push(Row::Kind::Added, -1, m_rightAt++);
        }
    }

    static std::int32_t movedId(const std::vector<std::int32_t> &ids, std::int32_t line)
    {
        return ids.empty() ? -1 : ids[static_cast<std::size_t>(line)];
    }

    void push(Row::Kind kind, std::int32_t left, std::int32_t right, std::int32_t moved = -1)
    {
        m_diff.rows.push_back({kind, left, right, moved});
    }

    void findHunks()
    {
        const std::vector<Row> &rows = m_diff.rows;
        std::int32_t lastChanged = -1;
        for (std::int32_t i = 0; i < static_cast<std::int32_t>(rows.size()); ++i) {
            if (rows[static_cast<std::size_t>(i)].kind == Row::Kind::Equal)
                continue;
            if (lastChanged >= 0 && bridged(lastChanged + 1, i))
                m_diff.hunks.back().rowCount = i - m_diff.hunks.back().firstRow + 1;
            else
                m_diff.hunks.push_back({i, 1});
            lastChanged = i;
        }
    }

    bool bridged(std::int32_t firstRow, std::int32_t endRow) const
    {
        if (endRow - firstRow > bridgedRows)
            return false;
        for (std::int32_t i = firstRow; i < endRow; ++i) {
            const std::int32_t line = m_diff.rows[static_cast<std::size_t>(i)].leftLine;
            if (wordCharacters(m_left[static_cast<std::size_t>(line)], 1) > 0)
                return false;
        }
        return true;
    }

    std::string_view m_leftText;
    std::string_view m_rightText;
    std::vector<std::string_view> m_left;
    std::vector<std::string_view> m_right;
    Options m_options;
    std::stop_token m_stop;
    std::vector<PairedBlock> m_blocks;
    std::vector<std::int32_t> m_movedLeft; ///< by line: id of its move, or -1; empty when there are no moves
    std::vector<std::int32_t> m_movedRight;
    std::int32_t m_leftAt = 0;
    std::int32_t m_rightAt = 0;
    Diff m_diff;
};

} // namespace

Diff compare(std::string_view left, std::string_view right, const Options &options, std::stop_token stop)
{
    return Aligner(left, right, options, std::move(stop)).run();
}

} // namespace klineage::diff
