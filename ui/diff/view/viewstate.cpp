// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/viewstate.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr std::size_t mostWordRows = 20000;

std::vector<WordChanges::Range> toUnits(std::string_view line, const std::vector<diff::Span> &spans)
{
    std::vector<WordChanges::Range> ranges;
    for (const diff::Span &span : spans)
        ranges.push_back({unitOfByte(line, span.begin), unitOfByte(line, span.begin + span.length)});
    return ranges;
}

bool coversLine(std::string_view line, const std::vector<diff::Span> &spans)
{
    return spans.size() == 1 && spans.front().begin == 0
           && spans.front().length == static_cast<int>(line.size());
}

} // namespace

void ViewState::setDocument(DocumentPtr document)
{
    m_document = std::move(document);
    m_opened.clear();
    m_words.clear();
    m_lateRuns = {};
    selection = {};
    matches = {};
    currentMatch = -1;
    currentRow = 0;
    marked.reset();
    heat.reset();
    comments.reset();
    rebuild();
}

void ViewState::setOptions(const ViewOptions &options)
{
    m_options = options;
    m_opened.clear();
    rebuild();
}

void ViewState::openFold(int firstHiddenRow)
{
    m_opened.insert(firstHiddenRow);
    rebuild();
}

void ViewState::rebuild()
{
    m_rows = m_document ? ViewRows(*m_document, m_options, m_opened) : ViewRows();
    currentRow = std::clamp(currentRow, 0, std::max(0, m_rows.count() - 1));
}

std::optional<SideLine> ViewState::currentLine() const
{
    if (currentRow >= m_rows.count() || m_rows.at(currentRow).kind == ViewRow::Kind::Fold)
        return std::nullopt;
    const ViewRow &viewRow = m_rows.at(currentRow);
    const diff::Row &row = m_document->diff.rows[static_cast<std::size_t>(viewRow.row)];
    Side side = viewRow.kind == ViewRow::Kind::Left    ? Side::Left
                : viewRow.kind == ViewRow::Kind::Right ? Side::Right
                                                       : selection.side;
    if (lineOf(row, side) < 0)
        side = other(side);
    return SideLine{side, lineOf(row, side)};
}

void ViewState::setRuns(Side side, int first, const std::vector<LineRuns> &runs)
{
    auto &all = m_lateRuns[static_cast<std::size_t>(side)];
    all.resize(std::max(all.size(), static_cast<std::size_t>(first) + runs.size()));
    std::copy(runs.begin(), runs.end(), all.begin() + first);
}

const LineRuns &ViewState::runs(Side side, int line) const
{
    static const LineRuns none;
    const auto at = static_cast<std::size_t>(line);
    const auto &early = m_document->side(side).runs;
    if (at < early.size())
        return early[at];
    const auto &late = m_lateRuns[static_cast<std::size_t>(side)];
    return at < late.size() ? late[at] : none;
}

const WordChanges &ViewState::words(int diffRow)
{
    const auto found = m_words.find(diffRow);
    if (found != m_words.end())
        return found->second;
    if (m_words.size() >= mostWordRows)
        m_words.clear();
    WordChanges words;
    const diff::Row &row = m_document->diff.rows[static_cast<std::size_t>(diffRow)];
    if (row.kind == diff::Row::Kind::Changed) {
        const std::string_view left = m_document->left->text.line(row.leftLine);
        const std::string_view right = m_document->right->text.line(row.rightLine);
        const diff::LineChanges changes = diff::compareLines(left, right);
        if (!coversLine(left, changes.left) || !coversLine(right, changes.right))
            words.ranges = {toUnits(left, changes.left), toUnits(right, changes.right)};
    }
    return m_words.emplace(diffRow, std::move(words)).first->second;
}

} // namespace klineage::ui
