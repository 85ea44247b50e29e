// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diff/lines.h"

#include <stop_token>
#include <string_view>
#include <vector>

namespace klineage::diff {

/// Lines that left one place and arrived, unchanged but for indentation, at another.
struct Move {
    std::int32_t left = 0;
    std::int32_t right = 0;
    std::int32_t count = 0;
};

/// Finds moved blocks among removed and added lines (both ascending). A block has at least `minimumMovedLines` adjacent lines and
/// 20 letters or digits, so that lone braces never count; no line belongs to two blocks.
inline constexpr std::int32_t minimumMovedLines = 3;
[[nodiscard]] std::vector<Move> findMoves(const std::vector<std::string_view> &leftLines,
                                          const std::vector<std::int32_t> &removed,
                                          const std::vector<std::string_view> &rightLines,
                                          const std::vector<std::int32_t> &added,
                                          const std::stop_token &stop);

} // namespace klineage::diff
