// SPDX-License-Identifier: GPL-3.0-or-later
// The story in MainWindow: its presentation, and two states of any lineages that are picked one after the other.
#include "ui/shell/mainwindow.h"

#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/gotoentries.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/shell/statusline.h"
#include "ui/story/storypanel.h"

#include <algorithm>

namespace klineage::ui {

namespace {

/// States and attempts, those of the lineage `first` before the others.
std::vector<QuickEntry> rowEntries(const WorkspaceModel &workspace, const QString &first,
                                   const std::function<void(const QString &, const QString &)> &pick)
{
    std::vector<QuickEntry> entries = goToEntries(workspace, first, {pick, [](const QString &) {}});
    entries.erase(
        std::remove_if(entries.begin(), entries.end(),
                       [](const QuickEntry &entry) { return entry.icon != QLatin1String("state"); }),
        entries.end());
    return entries;
}

} // namespace

void MainWindow::connectStory()
{
    auto *story = qobject_cast<StoryPanel *>(panel(QStringLiteral("story")));
    addActions(story->commands()); // their keys act while the panel is hidden, too
    connect(story, &StoryPanel::message, m_status, &StatusLine::say);
    connect(story, &StoryPanel::rowOpened, this, [this] { m_centre->showPage(QStringLiteral("diff")); });
    connect(story, &StoryPanel::compareRequested, this, [this] {
        m_quickOpen->open(
            tr("Compare: the left state"),
            rowEntries(*m_workspace, m_selection->lineageKey(),
                       [this](const QString &key, const QString &row) { pickToCompare(key, row); }));
    });
}

bool MainWindow::showStory(const QString &view)
{
    const qsizetype index = StoryPanel::viewNames().indexOf(view);
    if (index < 0)
        return false;
    furnish();
    qobject_cast<StoryPanel *>(panel(QStringLiteral("story")))->setView(static_cast<StoryPanel::View>(index));
    raisePanel(QStringLiteral("story"));
    return true;
}

void MainWindow::pickToCompare(const QString &leftKey, const QString &leftRow)
{
    m_quickOpen->open(tr("Compare %1/%2 with: the right state").arg(leftKey, leftRow),
                      rowEntries(*m_workspace, m_selection->lineageKey(),
                                 [=, this](const QString &key, const QString &row) {
                                     qobject_cast<StoryPanel *>(panel(QStringLiteral("story")))
                                         ->compare(leftKey, leftRow, key, row);
                                 }));
}

} // namespace klineage::ui
