// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <tuple>

namespace klineage {

/// A place in a text file. Lines and columns count from 1; line 0 means "the file as a whole".
struct TextPosition {
    int line = 0;
    int column = 0;

    friend bool operator==(const TextPosition &, const TextPosition &) = default;
    friend bool operator<(const TextPosition &a, const TextPosition &b)
    {
        return std::tie(a.line, a.column) < std::tie(b.line, b.column);
    }
};

/// "file:line:column: message", or "file: message" for the file as a whole.
[[nodiscard]] inline std::string located(const std::string &fileName, TextPosition position,
                                         const std::string &message)
{
    if (position.line <= 0)
        return fileName + ": " + message;
    return fileName + ':' + std::to_string(position.line) + ':' + std::to_string(position.column) + ": "
           + message;
}

} // namespace klineage
