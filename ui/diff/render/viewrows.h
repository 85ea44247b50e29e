// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/document.h"

#include <set>
#include <vector>

namespace klineage::ui {

/// A line on the screen.
struct ViewRow {
    enum class Kind : quint8 {
        Both,  ///< a row of the diff with both its sides (of a text that stands alone: with its one side)
        Left,  ///< unified: the left line of a changed row
        Right, ///< unified: the right line of a changed row
        Fold,  ///< rowCount unchanged rows are hidden
    };
    Kind kind = Kind::Both;
    int row = 0; ///< row of the diff; of a fold: the first hidden one
    int rowCount = 1;
};

struct ViewOptions {
    bool unified = false;
    bool fold = true;
    bool wrap = false; ///< of the view: rows do not depend on it
    int context = 3;   ///< unchanged rows kept around a change
};

/// The lines on the screen, in order. A pure function of the diff, the options and the folds that were opened.
class ViewRows
{
public:
    ViewRows() = default;
    /// opened: first hidden rows of the folds that are open.
    ViewRows(const Document &document, const ViewOptions &options, const std::set<int> &opened = {});

    [[nodiscard]] int count() const { return static_cast<int>(m_rows.size()); }
    [[nodiscard]] const ViewRow &at(int index) const { return m_rows[static_cast<std::size_t>(index)]; }
    /// Where a row of the diff is seen: its line of that side, or the fold that hides it.
    [[nodiscard]] int indexOf(int diffRow, Side side) const;
    /// The row of the diff that holds a line; -1 when there is no such line.
    [[nodiscard]] int diffRowOf(Side side, int line) const;

private:
    void append(const ViewRow &row);
    void appendChanged(const Document &document, int first, int end);

    std::vector<ViewRow> m_rows;
    std::vector<int> m_leftIndex; ///< by row of the diff
    std::vector<int> m_rightIndex;
    std::vector<int> m_rowOfLeftLine;
    std::vector<int> m_rowOfRightLine;
};

/// The line that heads the code at `line`, for a fold's label: the nearest one above it that begins with a letter in the first
/// column and is no label. -1: none.
[[nodiscard]] int headingLine(const TextLines &text, int line);

} // namespace klineage::ui
