// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/diff/render/comments.h"
#include "ui/diff/render/find.h"
#include "ui/diff/render/heat.h"
#include "ui/diff/render/selection.h"
#include "ui/diff/render/viewrows.h"
#include "ui/diff/view/linelayouts.h"

#include <array>
#include <optional>
#include <unordered_map>

namespace klineage::ui {

/// Changed units of a row's two lines.
struct WordChanges {
    struct Range {
        int begin = 0;
        int end = 0;
    };
    std::array<std::vector<Range>, 2> ranges; ///< by side
};

/// What a DiffView shows, apart from where it is scrolled to. Everything derived is made when it is first asked for.
class ViewState
{
public:
    void setDocument(DocumentPtr document);
    [[nodiscard]] const DocumentPtr &document() const { return m_document; }

    void setOptions(const ViewOptions &options);
    [[nodiscard]] const ViewOptions &options() const { return m_options; }
    void openFold(int firstHiddenRow);
    [[nodiscard]] const ViewRows &rows() const { return m_rows; }

    [[nodiscard]] bool isSplit() const { return m_document && !m_document->isSingle() && !m_options.unified; }
    [[nodiscard]] bool isUnified() const
    {
        return m_document && !m_document->isSingle() && m_options.unified;
    }

    /// Highlighting that arrived after the document.
    void setRuns(Side side, int first, const std::vector<LineRuns> &runs);
    [[nodiscard]] const LineRuns &runs(Side side, int line) const;
    /// Empty for rows that are not Changed, and for lines that differ as a whole.
    [[nodiscard]] const WordChanges &words(int diffRow);

    /// The line in the current row: of the selection's side, or of the other one where that has none. Nothing on a fold.
    [[nodiscard]] std::optional<SideLine> currentLine() const;

    TextSelection selection;
    FindResult matches;
    int currentMatch = -1;
    int currentRow = 0;             ///< index into rows()
    std::optional<SideLine> marked; ///< that another panel points at
    HeatPtr heat;                   ///< of the document; null: it is not shown
    CommentsPtr comments;           ///< on the document; null: none

private:
    void rebuild();

    DocumentPtr m_document;
    ViewOptions m_options;
    std::set<int> m_opened;
    ViewRows m_rows;
    std::array<std::vector<LineRuns>, 2> m_lateRuns;
    std::unordered_map<int, WordChanges> m_words;
};

} // namespace klineage::ui
