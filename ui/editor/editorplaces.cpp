// SPDX-License-Identifier: GPL-3.0-or-later
// The walk of EditorPanel through what is wrong with a draft, and what differs from the row that it was begun from.
#include "core/diff/changes.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"

#include <QTextBlock>

#include <algorithm>

namespace klineage::ui {

std::vector<EditorPanel::Place> EditorPanel::places() const
{
    std::vector<Place> all;
    const int last = m_edit->blockCount() - 1;
    for (const Diagnostic &finding : m_edit->diagnostics())
        all.push_back(
            {std::clamp(finding.line - 1, 0, last), std::max(0, finding.column - 1), finding.message});
    const auto [before, now] = texts();
    const auto blocks = diff::changedBlocks(before.toStdString(), now.toStdString(), false, {});
    for (const diff::Block &block : blocks.value_or(std::vector<diff::Block>())) {
        const QString says = block.left.count == 0    ? tr("lines were added")
                             : block.right.count == 0 ? tr("lines were taken away before this one")
                                                      : tr("lines were changed");
        all.push_back({std::clamp(block.right.first, 0, last), 0, says});
    }
    // A finding says more than that its line is a changed one.
    std::stable_sort(all.begin(), all.end(), [](const Place &a, const Place &b) { return a.line < b.line; });
    all.erase(
        std::unique(all.begin(), all.end(), [](const Place &a, const Place &b) { return a.line == b.line; }),
        all.end());
    return all;
}

void EditorPanel::goToPlace(int by)
{
    const std::vector<Place> all = places();
    if (all.empty()) {
        emit message(tr("The draft has no finding, and no change yet."));
        return;
    }
    const int line = m_edit->textCursor().blockNumber();
    auto at =
        by > 0
            ? std::find_if(all.begin(), all.end(), [line](const Place &place) { return place.line > line; })
            : std::find_if(all.begin(), all.end(), [line](const Place &place) { return place.line >= line; });
    if (by > 0)
        at = at == all.end() ? all.begin() : at;
    else
        at = std::prev(at == all.begin() ? all.end() : at);
    const QTextBlock block = m_edit->document()->findBlockByNumber(at->line);
    const QString text = block.text();
    int column = std::min(at->column, static_cast<int>(text.size()));
    while (at->column == 0 && column < text.size() && text.at(column).isSpace())
        ++column;
    m_edit->goTo(block.position() + column);
    emit message(tr("Finding or change %1 of %2, line %3: %4")
                     .arg(at - all.begin() + 1)
                     .arg(all.size())
                     .arg(at->line + 1)
                     .arg(at->says));
}

} // namespace klineage::ui
