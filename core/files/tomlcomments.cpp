// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlcomments.h"

#include <algorithm>

namespace klineage::files {

namespace {

/// The quotes that open a string here: three of them, one, or none.
std::string_view openingQuotes(std::string_view text)
{
    if (text.starts_with("\"\"\"") || text.starts_with("'''"))
        return text.substr(0, 3);
    return !text.empty() && (text[0] == '"' || text[0] == '\'') ? text.substr(0, 1) : std::string_view();
}

/// How long the string is that begins here, with its quotes; of one that is not closed, all that is left.
std::size_t stringLength(std::string_view text, std::string_view quotes)
{
    const bool hasEscapes = quotes[0] == '"';
    std::size_t at = quotes.size();
    while (at < text.size()) {
        if (hasEscapes && text[at] == '\\') {
            at += 2;
            continue;
        }
        if (text.substr(at).starts_with(quotes)) {
            at += quotes.size();
            while (quotes.size() == 3 && at < text.size() && text[at] == quotes[0])
                ++at; // up to two quotes may stand before the closing three
            return at;
        }
        ++at;
    }
    return text.size();
}

} // namespace

std::string withoutTomlComments(std::string_view text)
{
    std::string out;
    std::string line;
    bool hadComment = false;
    while (!text.empty()) {
        std::size_t length = 1;
        if (const std::string_view quotes = openingQuotes(text); !quotes.empty()) {
            length = stringLength(text, quotes);
            line.append(text.substr(0, length));
        } else if (text[0] == '#') {
            length = std::min(text.find('\n'), text.size());
            line.erase(line.find_last_not_of(" \t") + 1);
            hadComment = true;
        } else if (text[0] == '\n') {
            const bool isKept = !(hadComment && line.empty()) && !(out.empty() && line.empty());
            if (isKept)
                out += line + '\n';
            line.clear();
            hadComment = false;
        } else {
            line += text[0];
        }
        text.remove_prefix(length);
    }
    return out + line;
}

} // namespace klineage::files
