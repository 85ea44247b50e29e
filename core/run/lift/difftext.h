// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace klineage::run {

/// The unified diff of two texts with lines of context around each change; cut at a line when it would be longer than maxBytes, and
/// said so. Empty when they are equal.
[[nodiscard]] std::string diffText(std::string_view before, std::string_view after, int context,
                                   std::size_t maxBytes);

} // namespace klineage::run
