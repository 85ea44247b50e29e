// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/gotoentries.h"

#include "core/lineage/largeststeps.h"
#include "core/workspace/workspace.h"
#include "ui/models/lineagerow.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/commands/actionregistry.h"
#include "ui/style/format.h"
#include "ui/style/status.h"

#include <QPointer>

#include <algorithm>

namespace klineage::ui {

namespace {

QString text(const std::string &value)
{
    return QString::fromStdString(value);
}

void addLineage(std::vector<QuickEntry> &entries, const lineage::Lineage &lineage, const GoTo &goTo)
{
    const QString key = text(lineage.key());
    const auto go = [goTo, key](const QString &row) { return [goTo, key, row] { goTo.row(key, row); }; };
    const QString best = lineage.states.empty() ? QString() : text(lineage.states.back().id);
    entries.push_back({key, text(lineage.title), {}, QStringLiteral("lineage"), go(best)});
    for (auto state = lineage.states.rbegin(); state != lineage.states.rend(); ++state)
        entries.push_back({key + QLatin1Char('/') + text(state->id),
                           text(state->title),
                           {},
                           QStringLiteral("state"),
                           go(text(state->id))});
    for (const lineage::Attempt &attempt : lineage.attempts)
        entries.push_back({key + QLatin1Char('/') + text(attempt.id),
                           text(attempt.title),
                           {},
                           QStringLiteral("state"),
                           go(text(attempt.id))});
}

} // namespace

std::vector<QuickEntry> goToEntries(const WorkspaceModel &workspace, const QString &first, const GoTo &goTo)
{
    std::vector<QuickEntry> entries;
    const auto &lineages = workspace.workspace().lineages;
    if (const lineage::Lineage *selected = workspace.lineage(first))
        addLineage(entries, *selected, goTo);
    for (const lineage::Lineage &lineage : lineages) {
        if (text(lineage.key()) != first)
            addLineage(entries, lineage, goTo);
    }
    for (const workload::Workload &workload : workspace.workspace().workloads) {
        const auto of = std::find_if(lineages.begin(), lineages.end(),
                                     [&](const auto &l) { return l.workload == workload.name; });
        if (of == lineages.end())
            continue;
        const QString key = text(of->key());
        const QString row = of->states.empty() ? QString() : text(of->states.back().id);
        entries.push_back(
            {text(workload.name), text(workload.title), {}, QStringLiteral("workload"), [goTo, key, row] {
                 goTo.row(key, row);
             }});
    }
    for (const skills::CardRecord &record : workspace.workspace().cards) {
        const QString name = text(record.card.name);
        entries.push_back(
            {name,
             statusStyle(record.life()).word + QStringLiteral(" · ") + text(record.card.intent.text),
             {},
             QStringLiteral("card"),
             [goTo, name] { goTo.card(name); }});
    }
    return entries;
}

std::vector<QuickEntry> largestStepEntries(const WorkspaceModel &workspace, const GoTo &goTo)
{
    std::vector<QuickEntry> entries;
    for (const auto &[lineage, step] : lineage::largestSteps(workspace.workspace().lineages)) {
        const QString key = text(lineage->key());
        const QString to = text(step.to);
        const lineage::State *state = lineage->findState(step.to);
        entries.push_back({QStringLiteral("%1/%2 → %3").arg(key, text(step.from), to),
                           QStringLiteral("%1 · %2").arg(text(step.device), stepTitle(*lineage, *state)),
                           QStringLiteral("%1 [%2, %3]")
                               .arg(formatSpeedup(step.speedup.value), formatSpeedup(step.speedup.low),
                                    formatSpeedup(step.speedup.high)),
                           QStringLiteral("state"), [goTo, key, to] { goTo.row(key, to); }});
    }
    return entries;
}

std::vector<QuickEntry> commandEntries(const ActionRegistry &registry)
{
    std::vector<QuickEntry> entries;
    for (const ActionRegistry::Entry &entry : registry.entries()) {
        if (!entry.action->isEnabled())
            continue;
        QString title = entry.action->text();
        title.remove(QLatin1Char('&'));
        entries.push_back({title, entry.group, entry.action->shortcut().toString(QKeySequence::NativeText),
                           QStringLiteral("run"), [action = QPointer<QAction>(entry.action)] {
                               if (action)
                                   action->trigger();
                           }});
    }
    std::stable_sort(entries.begin(), entries.end(), [](const QuickEntry &a, const QuickEntry &b) {
        return a.title.localeAwareCompare(b.title) < 0;
    });
    return entries;
}

} // namespace klineage::ui
