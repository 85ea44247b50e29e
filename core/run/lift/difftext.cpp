// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/run/lift/difftext.h"

#include "core/diff/changes.h"

#include <algorithm>

namespace klineage::run {

namespace {

class Writer
{
public:
    Writer(std::string_view before, std::string_view after, int context)
        : m_left(diff::splitLines(before))
        , m_right(diff::splitLines(after))
        , m_context(context)
    {}

    std::string run(const std::vector<diff::Block> &blocks)
    {
        std::size_t first = 0;
        while (first < blocks.size()) {
            std::size_t last = first;
            while (last + 1 < blocks.size()
                   && blocks[last + 1].left.first - blocks[last].left.end() <= 2 * m_context)
                ++last;
            hunk(blocks, first, last);
            first = last + 1;
        }
        return std::move(m_text);
    }

private:
    void hunk(const std::vector<diff::Block> &blocks, std::size_t first, std::size_t last)
    {
        const std::int32_t before = std::min(m_context, blocks[first].left.first);
        const std::int32_t begin = blocks[first].left.first - before;
        const std::int32_t end =
            std::min(blocks[last].left.end() + m_context, static_cast<std::int32_t>(m_left.size()));
        const std::int32_t rightBegin = blocks[first].right.first - before;
        const std::int32_t rightEnd = blocks[last].right.end() + (end - blocks[last].left.end());
        m_text += "@@ -" + std::to_string(begin + 1) + ',' + std::to_string(end - begin) + " +"
                  + std::to_string(rightBegin + 1) + ',' + std::to_string(rightEnd - rightBegin) + " @@\n";
        std::int32_t at = begin;
        for (std::size_t i = first; i <= last; ++i) {
            lines(' ', m_left, at, blocks[i].left.first);
            lines('-', m_left, blocks[i].left.first, blocks[i].left.end());
            lines('+', m_right, blocks[i].right.first, blocks[i].right.end());
            at = blocks[i].left.end();
        }
        lines(' ', m_left, at, end);
    }

    void lines(char mark, const std::vector<std::string_view> &from, std::int32_t begin, std::int32_t end)
    {
        for (std::int32_t i = begin; i < end; ++i) {
            m_text += mark;
            m_text += from[static_cast<std::size_t>(i)];
            m_text += '\n';
        }
    }

    std::vector<std::string_view> m_left;
    std::vector<std::string_view> m_right;
    std::int32_t m_context;
    std::string m_text;
};

} // namespace

std::string diffText(std::string_view before, std::string_view after, int context, std::size_t maxBytes)
{
    const auto blocks = diff::changedBlocks(before, after, false, {});
    if (!blocks || blocks->empty())
        return {};
    std::string text = Writer(before, after, context).run(*blocks);
    if (text.size() > maxBytes) {
        const std::size_t line = text.rfind('\n', maxBytes);
        text.resize(line == std::string::npos ? 0 : line + 1);
        text += "[the rest is left out]\n";
    }
    return text;
}

} // namespace klineage::run
