// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>

namespace klineage::gate {

/// The source as a compiler reads it after its first phases: every end of line is a newline, lines that a backslash continues are one, comments are
/// blanks. This text is looked at, and this text is compiled, so that nothing can stand in the one that is not in the other. Lines keep
/// their numbers: the newlines of a continued line or a comment come at its end.
[[nodiscard]] std::string plainSource(std::string_view source);

/// The same with its comments. They cannot be told from other text in every language: quotes mean other things in C++'s raw literals and
/// between digits.
[[nodiscard]] std::string joinedSource(std::string_view source);

} // namespace klineage::gate
