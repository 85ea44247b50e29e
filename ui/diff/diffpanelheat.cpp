// SPDX-License-Identifier: GPL-3.0-or-later
// Stall samples in DiffPanel: the gutter, what the headers say of it, and the walk from change to change by the samples that moved.
#include "ui/diff/diffpanel.h"

#include "ui/diff/render/heattext.h"
#include "ui/diff/sideheader.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QAction>

namespace klineage::ui {

namespace {

void setSamples(SideHeader *header, const QString &samples)
{
    SideHeading heading = header->heading();
    heading.samples = samples;
    header->setHeading(heading);
}

} // namespace

/// shown: null while the text is on its way, of which nobody knows yet whether it is what the trial measured.
void DiffPanel::refreshHeat(const DocumentPtr &shown)
{
    m_heat.reset();
    m_movedAt = -1;
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto step = lineage ? lineage::findStep(*lineage, m_selection->row().toStdString(),
                                                  m_selection->baseline().toStdString())
                              : std::nullopt;
    if (step && tab() == DiffTab::Source) {
        const auto side = [&shown](const lineage::RowRef &row, Side which) {
            return heatSideOf(row, shown && shown->has(which) ? shown->side(which).sha : std::string());
        };
        m_heat =
            makeHeat(step->left ? side(*step->left, Side::Left) : HeatSide{}, side(step->right, Side::Right));
    }
    showHeat();
}

void DiffPanel::showHeat()
{
    const bool wanted = m_heat && m_heatAction->isChecked();
    setSamples(m_left, wanted ? samplesInWords(m_heat->side(Side::Left), *m_heat) : QString());
    setSamples(m_right, wanted ? samplesInWords(m_heat->side(Side::Right), *m_heat) : QString());
    if (isUpToDate())
        m_view->setHeat(wanted ? m_heat : nullptr);
}

/// What the gutter says of a line that somebody went to.
void DiffPanel::sayHeat(Side side)
{
    const QString words = m_view->heatOfRow(m_view->currentRow(), side);
    if (!words.isEmpty())
        emit message(words);
}

void DiffPanel::goByMoved(int step)
{
    setTab(DiffTab::Source);
    if (!isUpToDate()) { // it is on its way
        m_arrival = Arrival::MostMoved;
        return;
    }
    const DocumentPtr &document = m_view->document();
    if (!m_heat || !document) {
        emit message(tr("Choose a lineage in the library to see where samples moved."));
        return;
    }
    if (document->isSingle()) {
        emit message(
            tr("%1 is compared with nothing, so no samples moved.").arg(m_heat->side(Side::Right).label));
        return;
    }
    for (const HeatSide &side : m_heat->sides) {
        if (side.samples.isEmpty()) {
            emit message(tr("Where samples moved cannot be said. %1: %2").arg(side.label, side.why));
            return;
        }
    }
    const std::vector<HunkHeat> order = hunksByMoved(document->diff, *m_heat);
    const int count = static_cast<int>(order.size());
    const int next = m_movedAt < 0 ? 0 : m_movedAt + step;
    if (count == 0) {
        emit message(tr("No difference, so no samples moved from change to change."));
    } else if (next < 0) {
        emit message(tr("This is the change where most samples moved."));
    } else if (next >= count) {
        emit message(tr("This is the change where fewest samples moved."));
    } else {
        m_movedAt = next;
        const HunkHeat &hunk = order[static_cast<std::size_t>(next)];
        m_view->goToLine(hunk.hottest.side, hunk.hottest.line);
        emit message(
            tr("%1 (%2 of %3 by samples moved)")
                .arg(movedInWords(hunk, *m_heat), QString::number(next + 1), QString::number(count)));
    }
}

} // namespace klineage::ui
