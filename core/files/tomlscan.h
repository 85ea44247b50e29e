// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace klineage::files {

/// What is wrong at a byte of a text, in words.
struct TomlFinding {
    std::size_t offset = 0;
    std::string message;
};

/// Internal to TomlDocument: finds what the TOML library must not see, before it sees it.
/// - Dotted keys (`a.b.c.d…`) and brackets deeper than maxNesting: it would build, and recursively destroy, a
///   table for each.
/// - Characters outside ASCII where it looks for white space: its test (toml++ 3.3,
///   is_non_ascii_horizontal_whitespace) runs into undefined behaviour for most of them. Valid TOML has them in
///   strings and comments only, with one exception: after a backslash that continues a line of a """ string
///   they must be written as \uXXXX here.
[[nodiscard]] std::optional<TomlFinding> scanToml(std::string_view text, int maxNesting);

} // namespace klineage::files
