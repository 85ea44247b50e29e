// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::diff {

/// A changed stretch of a line, in UTF-8 bytes.
struct Span {
    std::int32_t begin = 0;
    std::int32_t length = 0;
};

/// One aligned row of a side-by-side view.
struct Row {
    enum class Kind : std::uint8_t { Equal, Changed, Added, Removed };
    Kind kind = Kind::Equal;
    std::int32_t leftLine = -1; ///< 0-based; -1: filler
    std::int32_t rightLine = -1;
    std::int32_t moved = -1; ///< id of a moved block, the same on both sides; -1: none
};

/// Rows [first, first + count) that are one change.
struct Hunk {
    std::int32_t firstRow = 0;
    std::int32_t rowCount = 0;
};

struct Options {
    bool ignoreWhitespace = false;
    bool detectMoves = true;
};

/// A line diff of two texts; the texts are not kept.
struct Diff {
    std::vector<Row> rows;
    std::vector<Hunk> hunks;
    bool cancelled = false; ///< not computed: never to be shown as "no difference"
};

/// Pure; 100k lines a side in well under 250 ms.
[[nodiscard]] Diff compare(std::string_view left, std::string_view right, const Options &options = {},
                           std::stop_token stop = {});

/// Word-level changes of a Changed row, computed when it becomes visible. Lines over 20,000 bytes are compared as a whole.
struct LineChanges {
    std::vector<Span> left;
    std::vector<Span> right;
};
[[nodiscard]] LineChanges compareLines(std::string_view left, std::string_view right);

} // namespace klineage::diff
