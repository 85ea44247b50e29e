// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/find.h"

#include <algorithm>

namespace klineage::ui {

namespace {

char lowered(char c)
{
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

std::size_t findFrom(std::string_view line, const std::string &needle, std::size_t from, bool caseSensitive)
{
    if (caseSensitive)
        return line.find(needle, from);
    const auto found =
        std::search(line.begin() + static_cast<std::ptrdiff_t>(from), line.end(), needle.begin(),
                    needle.end(), [](char a, char b) { return lowered(a) == b; });
    return found == line.end() ? std::string_view::npos : static_cast<std::size_t>(found - line.begin());
}

} // namespace

FindResult findInDocument(const Document &document, const QString &text, const std::stop_token &stop,
                          std::size_t limit)
{
    FindResult result;
    const std::string needle = text.toStdString();
    if (needle.empty())
        return result;
    const bool caseSensitive =
        std::any_of(needle.begin(), needle.end(), [](char c) { return c >= 'A' && c <= 'Z'; });
    const std::vector<diff::Row> &rows = document.diff.rows;
    for (std::size_t i = 0; i < rows.size() && !stop.stop_requested(); ++i) {
        for (const Side side : {Side::Left, Side::Right}) {
            const int line = lineOf(rows[i], side);
            if (line < 0 || !document.has(side)
                || (side == Side::Left && rows[i].kind == diff::Row::Kind::Equal && rows[i].rightLine >= 0))
                continue;
            const std::string_view bytes = document.side(side).text.line(line);
            for (std::size_t at = findFrom(bytes, needle, 0, caseSensitive); at != std::string_view::npos;
                 at = findFrom(bytes, needle, at + needle.size(), caseSensitive)) {
                if (result.matches.size() == limit) {
                    result.truncated = true;
                    return result;
                }
                result.matches.push_back(
                    {static_cast<int>(i), side, line, static_cast<int>(at), static_cast<int>(needle.size())});
            }
        }
    }
    return result;
}

} // namespace klineage::ui
