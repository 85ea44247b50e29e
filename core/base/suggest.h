// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace klineage {

/// Fewest insertions, deletions, substitutions and swaps of neighbours (each bytes) that turn a into b.
[[nodiscard]] std::size_t editDistance(std::string_view a, std::string_view b);

/// The known name nearest to `name`, or empty when none is near enough to be a slip of the fingers
/// (a third of its length, at least 1 and at most 3 edits). Ties go to the earlier name.
[[nodiscard]] std::string nearestName(std::string_view name, const std::vector<std::string> &known);

/// "; did you mean 'x'?" or an empty string: to be appended to a message.
[[nodiscard]] std::string didYouMean(std::string_view name, const std::vector<std::string> &known);

/// "There is no <what> '<name>'; did you mean 'x'?", or with what there is when that is a short list.
[[nodiscard]] std::string noSuchName(const std::string &what, const std::string &name,
                                     const std::vector<std::string> &known);

/// 'a', 'b' or 'c' — for "expected one of …".
[[nodiscard]] std::string quotedList(const std::vector<std::string> &names);

} // namespace klineage
