// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace klineage::diff {

/// Half-open range of lines.
struct LineRange {
    std::int32_t first = 0;
    std::int32_t count = 0;

    [[nodiscard]] std::int32_t end() const { return first + count; }
};

/// The lines of a text, without their newline. A final newline ends the last line and starts no other. Views into the text.
[[nodiscard]] std::vector<std::string_view> splitLines(std::string_view text);

/// The line without blanks (space, tab, carriage return) at both ends.
[[nodiscard]] std::string_view trimmed(std::string_view line);

/// Letters and digits of a line, counted up to limit.
[[nodiscard]] int wordCharacters(std::string_view line, int limit = 64);

} // namespace klineage::diff
