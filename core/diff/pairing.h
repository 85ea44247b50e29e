// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diff/lines.h"

#include <stop_token>
#include <string_view>
#include <utility>
#include <vector>

namespace klineage::diff {

/// A left line and the right line that it became, as indices into the two ranges' texts.
using LinePair = std::pair<std::int32_t, std::int32_t>;

/// 0 (nothing in common) to 1 (the same but for blanks), by weighted tokens in common, order left aside.
[[nodiscard]] double lineSimilarity(std::string_view left, std::string_view right);

/// Pairs similar lines of a replaced block, ascending on both sides: the chain of pairs with the greatest total similarity.
/// Cost is bounded: small blocks weigh all pairs, large ones only pairs that share a rare token.
[[nodiscard]] std::vector<LinePair> pairSimilarLines(const std::vector<std::string_view> &leftLines,
                                                     LineRange left,
                                                     const std::vector<std::string_view> &rightLines,
                                                     LineRange right, const std::stop_token &stop);

} // namespace klineage::diff
