// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string_view>

/// Internal to withSiblings() and deviceSourceOf().
namespace klineage::kernel {

struct IncludeLine {
    std::string_view name; ///< without its signs; empty: the line includes nothing
    bool isQuoted = false;
};

[[nodiscard]] inline IncludeLine includeLineOf(std::string_view line)
{
    const auto skipBlanks = [&line] {
        const std::size_t begin = line.find_first_not_of(" \t");
        line.remove_prefix(begin == std::string_view::npos ? line.size() : begin);
    };
    for (const std::string_view word : {"#", "include"}) {
        skipBlanks();
        if (!line.starts_with(word))
            return {};
        line.remove_prefix(word.size());
    }
    skipBlanks();
    if (line.empty() || (line[0] != '<' && line[0] != '"'))
        return {};
    const bool isQuoted = line[0] == '"';
    const std::size_t end = line.find(isQuoted ? '"' : '>', 1);
    return end == std::string_view::npos ? IncludeLine() : IncludeLine{line.substr(1, end - 1), isQuoted};
}

} // namespace klineage::kernel
