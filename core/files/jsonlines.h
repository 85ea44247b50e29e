// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::files {

inline constexpr std::size_t maxLineBytes = std::size_t{16} << 20;
inline constexpr std::size_t maxLinesFileBytes = std::size_t{1} << 30;

struct Line {
    int number = 0;   ///< 1-based, in the file
    std::string text; ///< without the newline; never blank
};

/// The records of a .jsonl file. Blank lines are skipped.
struct Lines {
    std::vector<Line> lines;
    /// The last line, when it has no newline and is no JSON: what a killed writer left. Not among `lines`.
    std::optional<Line> tornTail;
};

/// Splits text that is already in memory. where is used in messages. InvalidInput when a line is longer than
/// maxLineBytes.
[[nodiscard]] Result<Lines> splitLines(std::string_view text, const std::string &where);

/// Reads a .jsonl file; a missing file is an Error (NotFound). Waits shortly for a writer that is in the
/// middle of appending.
[[nodiscard]] Result<Lines> readLines(const std::filesystem::path &path);

/// Appends one record and flushes it to the disk; creates the file when missing (its folder must exist). The
/// record must not contain a newline. Safe against a kill at any instant (at most this record is lost) and
/// against other writers (flock). A torn tail is repaired first: a complete JSON value gets its newline,
/// anything else is moved to "<name>.torn" beside the file, so that it never merges with the new record.
[[nodiscard]] Status appendLine(const std::filesystem::path &path, std::string_view line);

} // namespace klineage::files
