// SPDX-License-Identifier: GPL-3.0-or-later
// The walks of EditorPanel through what is wrong with a draft, and what differs from the row that it was begun from.
#include "core/diff/changes.h"
#include "core/trial/analysis/linesamples.h"
#include "ui/editor/codeedit.h"
#include "ui/editor/editorpanel.h"
#include "ui/style/format.h"

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
    goTo(*at);
    emit message(tr("Finding or change %1 of %2, line %3: %4")
                     .arg(at - all.begin() + 1)
                     .arg(all.size())
                     .arg(at->line + 1)
                     .arg(at->says));
}

void EditorPanel::goTo(const Place &place)
{
    const QTextBlock block = m_edit->document()->findBlockByNumber(place.line);
    const QString text = block.text();
    int column = std::min(place.column, static_cast<int>(text.size()));
    while (place.column == 0 && column < text.size() && text.at(column).isSpace())
        ++column;
    m_edit->goTo(block.position() + column);
}

/// A draft has no samples of its own; those of the row that it was begun from say what time its changes are about.
void EditorPanel::goToSampled(int by)
{
    const QString row = parentRow();
    const gate::Trial *trial = parentTrial();
    const gate::LineSamples samples = trial ? gate::LineSamples(*trial) : gate::LineSamples();
    const auto [before, now] = texts();
    if (samples.isEmpty()) {
        emit message(tr("%1 has no stall samples to order the changes of its draft by. F8 takes them in the "
                        "order of the text.")
                         .arg(row));
        return;
    }
    if (!parentIsMeasured(*trial)) {
        emit message(
            tr("The draft was not begun from what the trial of %1 measured, so its stall samples fit "
               "none of its lines. F8 takes its changes in the order of the text.")
                .arg(row));
        return;
    }
    const auto found = diff::changedBlocks(before.toStdString(), now.toStdString(), false, {});
    std::vector<diff::Block> order = found.value_or(std::vector<diff::Block>());
    if (order.empty()) {
        emit message(tr("The draft has no change yet."));
        return;
    }
    const auto share = [&samples](const diff::Block &block) {
        return samples.share({block.left.first + 1, block.left.count});
    };
    std::stable_sort(order.begin(), order.end(),
                     [&share](const diff::Block &a, const diff::Block &b) { return share(a) > share(b); });
    const int last = m_edit->blockCount() - 1;
    const auto lineOf = [last](const diff::Block &block) { return std::clamp(block.right.first, 0, last); };
    const int line = m_edit->textCursor().blockNumber();
    const auto here = std::find_if(order.begin(), order.end(),
                                   [&](const diff::Block &block) { return lineOf(block) == line; });
    const auto count = static_cast<std::ptrdiff_t>(order.size());
    const std::ptrdiff_t next = here == order.end() ? 0 : here - order.begin() + by;
    if (next < 0) {
        emit message(tr("This is the change of the lines with most samples."));
    } else if (next >= count) {
        emit message(tr("This is the change of the lines with fewest samples."));
    } else {
        const diff::Block &block = order[static_cast<std::size_t>(next)];
        goTo({lineOf(block), 0, {}});
        emit message(tr("Change %1 of %2 by samples, line %3: %4 of the stall samples of %5 fell on the "
                        "lines that it replaces.")
                         .arg(next + 1)
                         .arg(count)
                         .arg(lineOf(block) + 1)
                         .arg(formatFixed(100 * share(block), 1) + QStringLiteral("\u202f%"), row));
    }
}

} // namespace klineage::ui
