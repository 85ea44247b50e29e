// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/anchor.h"

#include "core/diff/lines.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int farthestLines = 5000;

bool sameText(const Document &before, Side a, const Document &after, Side b)
{
    if (!before.has(a) || !after.has(b))
        return false;
    const SideText &left = before.side(a);
    const SideText &right = after.side(b);
    return left.text.count() > 0 && (&left == &right || left.text.bytes() == right.text.bytes());
}

/// The line of `side` at a row or, where that is a filler, at the nearest row above.
int nearestLine(const Document &document, int diffRow, Side side)
{
    const auto &rows = document.diff.rows;
    for (int i = std::min(diffRow, static_cast<int>(rows.size()) - 1); i >= 0; --i) {
        const int line = lineOf(rows[static_cast<std::size_t>(i)], side);
        if (line >= 0)
            return line;
    }
    return 0;
}

int nearestWithContent(const TextLines &text, std::string_view content, int line)
{
    for (int distance = 0; distance < farthestLines; ++distance) {
        for (const int candidate : {line - distance, line + distance}) {
            if (candidate >= 0 && candidate < text.count() && text.line(candidate) == content)
                return candidate;
        }
    }
    return -1;
}

} // namespace

std::optional<Anchor> findAnchor(const Document &before, int diffRow, const Document &after)
{
    if (after.right->text.count() == 0 || before.diff.rows.empty())
        return std::nullopt;
    for (const Side from : {Side::Right, Side::Left}) {
        for (const Side to : {other(from), from}) {
            if (sameText(before, from, after, to))
                return Anchor{to, nearestLine(before, diffRow, from)};
        }
    }
    const Side from = before.right->text.count() > 0 ? Side::Right : Side::Left;
    if (!before.has(from) || before.side(from).text.count() == 0)
        return std::nullopt;
    // Lone braces and blank lines are everywhere: look for the nearest line above that says something.
    const TextLines &text = before.side(from).text;
    const int line = nearestLine(before, diffRow, from);
    for (int up = 0; up < 20 && line - up >= 0; ++up) {
        const std::string_view content = text.line(line - up);
        if (diff::wordCharacters(content, 3) < 3)
            continue;
        const int found = nearestWithContent(after.right->text, content, line - up);
        if (found >= 0)
            return Anchor{Side::Right, std::min(found + up, after.right->text.count() - 1)};
    }
    return Anchor{Side::Right, std::min(line, after.right->text.count() - 1)};
}

} // namespace klineage::ui
