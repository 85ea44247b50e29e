// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/search/evolveblocks.h"

#include <algorithm>
#include <vector>

namespace klineage::policy {

namespace {

constexpr std::string_view startMark = "EVOLVE-BLOCK-START";
constexpr std::string_view endMark = "EVOLVE-BLOCK-END";

std::vector<std::string_view> linesOf(std::string_view text)
{
    std::vector<std::string_view> lines;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        lines.push_back(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    }
    return lines;
}

struct Outside {
    std::string text;
    int blocks = 0;
};

Result<Outside> outsideOf(std::string_view text)
{
    Outside outside;
    bool isInside = false;
    int number = 0;
    for (const std::string_view line : linesOf(text)) {
        ++number;
        const bool starts = line.find(startMark) != std::string_view::npos;
        const bool ends = !starts && line.find(endMark) != std::string_view::npos;
        if ((starts && isInside) || (ends && !isInside))
            return fail(ErrorCode::InvalidInput,
                        "Line " + std::to_string(number) + " has " + std::string(starts ? startMark : endMark)
                            + (starts ? " within a block that is not closed." : " without a block."));
        outside.blocks += starts ? 1 : 0;
        if (ends)
            isInside = false;
        if (!isInside)
            outside.text.append(line).append("\n");
        if (starts)
            isInside = true;
    }
    if (isInside)
        return fail(ErrorCode::InvalidInput, "The last block has no line with " + std::string(endMark) + '.');
    return outside;
}

} // namespace

Result<EvolveBlocks> EvolveBlocks::of(std::string_view root)
{
    Result<Outside> outside = outsideOf(root);
    if (!outside)
        return tl::unexpected(outside.error());
    EvolveBlocks blocks;
    blocks.m_isWholeFile = outside->blocks == 0;
    blocks.m_fixed = std::move(outside->text);
    return blocks;
}

std::string EvolveBlocks::problemOf(std::string_view candidate) const
{
    if (m_isWholeFile)
        return {};
    const Result<Outside> outside = outsideOf(candidate);
    if (!outside)
        return outside.error().message + " It was not gated.";
    const std::vector<std::string_view> wanted = linesOf(m_fixed);
    const std::vector<std::string_view> found = linesOf(outside->text);
    if (wanted == found)
        return {};
    const auto [mine, theirs] = std::mismatch(wanted.begin(), wanted.end(), found.begin(), found.end());
    const std::string_view line = mine != wanted.end() ? *mine : *theirs;
    return "The candidate changes what lies outside of its evolve blocks, first near the line '"
           + std::string(line.substr(0, 80)) + "'. It was not gated.";
}

} // namespace klineage::policy
