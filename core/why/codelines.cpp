// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/why/codelines.h"

#include "core/kernel/outline/codescan.h"

#include <algorithm>

namespace klineage::why {

namespace {

/// Of a language that is not like C: what begins with '#' is a comment.
std::vector<bool> scriptLines(std::string_view text)
{
    std::vector<bool> lines(1, false);
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t first = text.substr(begin, end - begin).find_first_not_of(" \t\r");
        lines.push_back(first != std::string_view::npos && text[begin + first] != '#');
        begin = end + 1;
    }
    return lines;
}

} // namespace

std::vector<bool> codeLines(std::string_view text, kernel::Surface surface)
{
    if (!surface->dialect)
        return scriptLines(text);
    const bool endsInLine = text.empty() || text.back() == '\n';
    const auto count =
        static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n')) + (endsInLine ? 0 : 1);
    const kernel::CodeScan scan = kernel::scanCode(text);
    std::vector<bool> lines(count + 1, scan.isCut); // of what was not looked at nothing is known
    lines[0] = false;
    for (const kernel::CodeToken &token : scan.tokens) {
        if (token.line > 0 && static_cast<std::size_t>(token.line) <= count)
            lines[static_cast<std::size_t>(token.line)] = true;
    }
    return lines;
}

int nearestCode(const std::vector<bool> &lines, int line)
{
    const int last = static_cast<int>(lines.size()) - 1;
    if (line < 1 || line > last)
        return 0;
    for (int away = 0; away <= last; ++away) {
        for (const int at : {line + away, line - away}) {
            if (at >= 1 && at <= last && lines[static_cast<std::size_t>(at)])
                return at;
        }
    }
    return 0;
}

} // namespace klineage::why
