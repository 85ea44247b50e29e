// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/heat.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::ui {

namespace {

constexpr gate::LineSpan allLines{1, std::numeric_limits<int>::max() - 1};

HunkHeat heatOfHunk(const diff::Diff &diff, int hunk, const Heat &heat)
{
    const diff::Hunk &rows = diff.hunks[static_cast<std::size_t>(hunk)];
    const gate::LineSpan left = linesOfRows(diff, rows.firstRow, rows.rowCount, Side::Left);
    const gate::LineSpan right = linesOfRows(diff, rows.firstRow, rows.rowCount, Side::Right);
    HunkHeat out;
    out.hunk = hunk;
    out.left = heat.side(Side::Left).samples.share(left);
    out.right = heat.side(Side::Right).samples.share(right);
    const bool isRight = right.count > 0 && (left.count == 0 || out.right >= out.left);
    const gate::LineSpan &lines = isRight ? right : left;
    out.hottest.side = isRight ? Side::Right : Side::Left;
    const int hottest = heat.side(out.hottest.side).samples.hottest(lines);
    out.hottest.line = (hottest > 0 ? hottest : lines.first) - 1;
    return out;
}

} // namespace

HeatPtr makeHeat(HeatSide left, HeatSide right)
{
    auto heat = std::make_shared<Heat>();
    heat->sides = {std::move(left), std::move(right)};
    double full = 0;
    for (const HeatSide &side : heat->sides)
        full = std::max(full, side.samples.share({side.samples.hottest(allLines), 1}));
    heat->full = full > 0 ? full : 1;
    return heat;
}

gate::LineSpan linesOfRows(const diff::Diff &diff, int firstRow, int rowCount, Side side)
{
    int first = firstRow;
    int last = firstRow + rowCount - 1;
    const auto lineAt = [&](int row) { return lineOf(diff.rows[static_cast<std::size_t>(row)], side); };
    while (first <= last && lineAt(first) < 0)
        ++first;
    while (last > first && lineAt(last) < 0)
        --last;
    if (first > last)
        return {};
    return {lineAt(first) + 1, lineAt(last) - lineAt(first) + 1};
}

gate::LineSpan linesOfViewRow(const diff::Diff &diff, const ViewRow &row, Side side)
{
    if (row.kind == (side == Side::Left ? ViewRow::Kind::Right : ViewRow::Kind::Left))
        return {};
    return linesOfRows(diff, row.row, row.rowCount, side);
}

std::vector<HunkHeat> hunksByMoved(const diff::Diff &diff, const Heat &heat)
{
    std::vector<HunkHeat> hunks;
    hunks.reserve(diff.hunks.size());
    for (int i = 0; i < static_cast<int>(diff.hunks.size()); ++i)
        hunks.push_back(heatOfHunk(diff, i, heat));
    std::stable_sort(hunks.begin(), hunks.end(), [](const HunkHeat &a, const HunkHeat &b) {
        return std::abs(a.moved()) > std::abs(b.moved());
    });
    return hunks;
}

} // namespace klineage::ui
