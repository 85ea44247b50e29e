// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/render/viewrows.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int smallestFold = 2; // hiding a single line behind a line gains nothing

} // namespace

ViewRows::ViewRows(const Document &document, const ViewOptions &options, const std::set<int> &opened)
{
    const std::vector<diff::Row> &rows = document.diff.rows;
    const int total = static_cast<int>(rows.size());
    const bool unified = options.unified && !document.isSingle();
    const bool fold = options.fold && !document.diff.hunks.empty();
    m_rows.reserve(rows.size());
    m_leftIndex.assign(rows.size(), 0);
    m_rightIndex.assign(rows.size(), 0);
    for (int i = 0; i < total; ++i) {
        const diff::Row &row = rows[static_cast<std::size_t>(i)];
        if (row.leftLine >= 0)
            m_rowOfLeftLine.push_back(i);
        if (row.rightLine >= 0)
            m_rowOfRightLine.push_back(i);
    }

    for (int first = 0; first < total;) {
        const bool equal = rows[static_cast<std::size_t>(first)].kind == diff::Row::Kind::Equal;
        int end = first;
        while (end < total && (rows[static_cast<std::size_t>(end)].kind == diff::Row::Kind::Equal) == equal)
            ++end;
        if (!equal) {
            if (unified) {
                appendChanged(document, first, end);
            } else {
                for (int i = first; i < end; ++i)
                    append({ViewRow::Kind::Both, i, 1});
            }
            first = end;
            continue;
        }
        const int hiddenFirst = first == 0 ? 0 : first + options.context;
        const int hiddenEnd = end == total ? total : end - options.context;
        const bool folded = fold && hiddenEnd - hiddenFirst >= smallestFold && opened.count(hiddenFirst) == 0;
        for (int i = first; i < end; ++i) {
            if (folded && i == hiddenFirst) {
                append({ViewRow::Kind::Fold, i, hiddenEnd - hiddenFirst});
                i = hiddenEnd - 1;
            } else {
                append({ViewRow::Kind::Both, i, 1});
            }
        }
        first = end;
    }
}

void ViewRows::append(const ViewRow &row)
{
    const int index = count();
    for (int i = row.row; i < row.row + row.rowCount; ++i) {
        if (row.kind != ViewRow::Kind::Right)
            m_leftIndex[static_cast<std::size_t>(i)] = index;
        if (row.kind != ViewRow::Kind::Left)
            m_rightIndex[static_cast<std::size_t>(i)] = index;
    }
    m_rows.push_back(row);
}

void ViewRows::appendChanged(const Document &document, int first, int end)
{
    const std::vector<diff::Row> &rows = document.diff.rows;
    for (int i = first; i < end; ++i) {
        if (rows[static_cast<std::size_t>(i)].leftLine >= 0)
            append({ViewRow::Kind::Left, i, 1});
    }
    for (int i = first; i < end; ++i) {
        if (rows[static_cast<std::size_t>(i)].rightLine >= 0)
            append({ViewRow::Kind::Right, i, 1});
    }
    // A one-sided row is seen where its one line is.
    for (int i = first; i < end; ++i) {
        const auto at = static_cast<std::size_t>(i);
        if (rows[at].leftLine < 0)
            m_leftIndex[at] = m_rightIndex[at];
        if (rows[at].rightLine < 0)
            m_rightIndex[at] = m_leftIndex[at];
    }
}

int ViewRows::indexOf(int diffRow, Side side) const
{
    const std::vector<int> &index = side == Side::Left ? m_leftIndex : m_rightIndex;
    if (index.empty())
        return 0;
    return index[static_cast<std::size_t>(std::clamp(diffRow, 0, static_cast<int>(index.size()) - 1))];
}

int ViewRows::diffRowOf(Side side, int line) const
{
    const std::vector<int> &rows = side == Side::Left ? m_rowOfLeftLine : m_rowOfRightLine;
    if (line < 0 || line >= static_cast<int>(rows.size()))
        return -1;
    return rows[static_cast<std::size_t>(line)];
}

int headingLine(const TextLines &text, int line)
{
    constexpr int farthest = 2000;
    for (int i = std::min(line, text.count() - 1); i >= 0 && i > line - farthest; --i) {
        const std::string_view candidate = text.line(i);
        if (candidate.empty())
            continue;
        const char first = candidate.front();
        const bool letter = (first >= 'a' && first <= 'z') || (first >= 'A' && first <= 'Z') || first == '_';
        if (letter && candidate.back() != ':' && candidate.find('(') != std::string_view::npos)
            return i;
    }
    return -1;
}

} // namespace klineage::ui
