// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/sourcetext.h"

#include <utility>

namespace klineage::gate {

namespace {

/// Each "\r\n" and each "\r" is a newline to the compiler.
std::string withNewlines(std::string_view source)
{
    std::string text;
    text.reserve(source.size());
    for (std::size_t i = 0; i < source.size(); ++i) {
        if (source[i] != '\r') {
            text += source[i];
            continue;
        }
        text += '\n';
        i += i + 1 < source.size() && source[i + 1] == '\n' ? 1 : 0;
    }
    return text;
}

/// Where the line goes on after a backslash at `at`, blanks behind which do not matter; 0: it is none that continues a line.
std::size_t afterSplice(std::string_view text, std::size_t at)
{
    if (text[at] != '\\')
        return 0;
    const std::size_t end = text.find_first_not_of(" \t\v\f", at + 1);
    return end != std::string_view::npos && text[end] == '\n' ? end + 1 : 0;
}

/// Continued lines as one; the newlines that it had follow it.
std::string withoutSplices(std::string_view text)
{
    std::string joined;
    joined.reserve(text.size());
    std::size_t owed = 0;
    for (std::size_t i = 0; i < text.size();) {
        if (const std::size_t after = afterSplice(text, i); after > 0) {
            ++owed;
            i = after;
            continue;
        }
        joined += text[i];
        if (text[i] == '\n')
            joined.append(std::exchange(owed, 0), '\n');
        ++i;
    }
    return joined;
}

} // namespace

std::string joinedSource(std::string_view source)
{
    return withoutSplices(withNewlines(source));
}

std::string plainSource(std::string_view source)
{
    const std::string text = joinedSource(source);
    std::string plain;
    plain.reserve(text.size());
    char quote = 0;
    std::size_t owed = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        const char next = i + 1 < text.size() ? text[i + 1] : '\0';
        if (c == '\n') {
            quote = 0; // a literal that is not closed ends with its line
            plain.append(1 + std::exchange(owed, 0), '\n');
        } else if (quote != 0) {
            plain += c;
            if (c == '\\' && next != '\n' && next != '\0')
                plain += text[++i];
            else if (c == quote)
                quote = 0;
        } else if (c == '/' && next == '/') {
            const std::size_t end = text.find('\n', i);
            plain += ' ';
            i = (end == std::string::npos ? text.size() : end) - 1;
        } else if (c == '/' && next == '*') {
            const std::size_t mark = text.find("*/", i + 2);
            const std::size_t end = mark == std::string::npos ? text.size() : mark + 2;
            for (; i < end; ++i) {
                owed += text[i] == '\n' ? 1 : 0;
                plain.append(text[i] == '\n' ? 0 : 1, ' ');
            }
            --i;
        } else {
            quote = c == '"' || c == '\'' ? c : '\0';
            plain += c;
        }
    }
    return plain.append(owed, '\n');
}

} // namespace klineage::gate
