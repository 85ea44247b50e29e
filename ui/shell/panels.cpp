// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/panels.h"

#include "ui/cards/cardpanel.h"
#include "ui/diff/diffpanel.h"
#include "ui/editor/editorpanel.h"
#include "ui/experiments/compare/comparepanel.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/graph/lineagepanel.h"
#include "ui/library/librarypanel.h"
#include "ui/machine/machinepanel.h"
#include "ui/plots/trajectorytabs.h"
#include "ui/profile/profilepanel.h"
#include "ui/runs/runconsole.h"
#include "ui/runs/runspanel.h"
#include "ui/runs/runstepview.h"
#include "ui/shell/problemspanel.h"
#include "ui/story/storypanel.h"

#include <QCoreApplication>

namespace klineage::ui {

namespace {

using C = PanelContext;

QString panelText(const char *text)
{
    return QCoreApplication::translate("klineage::ui::Panels", text);
}

template <typename Panel>
QWidget *panelOf(const C &c)
{
    return new Panel(c.workspace, c.selection);
}

QWidget *card(const C &c)
{
    return new CardPanel(c.workspace, c.selection, c.reviewer);
}

QWidget *console(const C &c)
{
    return new RunConsole(c.gate, c.selection);
}

QWidget *trajectory(const C &c)
{
    return new TrajectoryTabs(c.workspace, c.selection, c.runs);
}

QWidget *story(const C &c)
{
    return new StoryPanel(c.workspace, c.selection, c.runs);
}

QWidget *runs(const C &c)
{
    return new RunsPanel(c.workspace, c.selection, c.runs, c.runner);
}

QWidget *runStep(const C &c)
{
    return new RunStepView(c.runs, c.runner, c.workspace);
}

QWidget *experiments(const C &c)
{
    return new ExperimentsPanel(c.workspace);
}

QWidget *compare(const C &c)
{
    return new ComparePanel(c.runs);
}

QWidget *problems(const C &c)
{
    return new ProblemsPanel(c.problems);
}

} // namespace

const std::vector<PanelSpec> &panelTable()
{
    // clang-format off
    static const std::vector<PanelSpec> table = {
        // id          title              icon          place               made by
        {"library",    panelText("Library"),     "library",    PanelPlace::Dock,   panelOf<LibraryPanel>},
        {"lineage",    panelText("Lineage"),     "lineage",    PanelPlace::Dock,   panelOf<LineagePanel>},
        {"diff",       panelText("Diff"),        "diff",       PanelPlace::Centre, panelOf<DiffPanel>},
        {"editor",     panelText("Editor"),      "editor",     PanelPlace::Centre, panelOf<EditorPanel>},
        {"run",        panelText("Run"),         "run",        PanelPlace::Centre, runStep},
        {"experiments", panelText("Experiments"), "trajectory", PanelPlace::Centre, experiments},
        {"compare",    panelText("Compare runs"), "trajectory", PanelPlace::Centre, compare},
        {"card",       panelText("SkillCard"),   "card",       PanelPlace::Dock,   card},
        {"profile",    panelText("Profile Δ"),   "profile",    PanelPlace::Dock,   panelOf<ProfilePanel>},
        {"machine",    panelText("Machine code"), "device",    PanelPlace::Dock,   panelOf<MachinePanel>},
        {"trajectory", panelText("Trajectory"),  "trajectory", PanelPlace::Dock,   trajectory},
        {"story",      panelText("Story"),       "trajectory", PanelPlace::Dock,   story},
        {"runs",       panelText("Runs"),        "run",        PanelPlace::Dock,   runs},
        {"console",    panelText("Run console"), "console",    PanelPlace::Dock,   console},
        {"problems",   panelText("Problems"),    "problems",   PanelPlace::Dock,   problems},
    };
    // clang-format on
    return table;
}

} // namespace klineage::ui
