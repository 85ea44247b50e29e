// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/diff/lines.h"

#include <optional>
#include <stop_token>
#include <string_view>
#include <vector>

namespace klineage::diff {

/// Lines `left` of the one text became lines `right` of the other; one of the two may be empty. The lines between two blocks are
/// equal (or equal but for whitespace).
struct Block {
    LineRange left;
    LineRange right;
};

/// The changed blocks in order (libgit2). Nothing when stopped, out of memory or without libgit2. Thread-safe.
[[nodiscard]] std::optional<std::vector<Block>> changedBlocks(std::string_view left, std::string_view right,
                                                              bool ignoreWhitespace, std::stop_token stop);

} // namespace klineage::diff
