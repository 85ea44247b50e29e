// SPDX-License-Identifier: GPL-3.0-or-later
// The commands and menus of MainWindow.
#include "ui/shell/mainwindow.h"

#include "ui/cards/cardreviewer.h"
#include "ui/experiments/experimentspanel.h"
#include "ui/experiments/experimentstore.h"
#include "ui/machine/machinepanel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/plots/trajectorytabs.h"
#include "ui/runs/gatecontroller.h"
#include "ui/runs/runcontroller.h"
#include "ui/runs/runstore.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/gotoentries.h"
#include "ui/shell/commands/keylistdialog.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/docks/dockpanel.h"
#include "ui/shell/docks/layouts.h"
#include "ui/shell/exporter.h"
#include "ui/shell/panels.h"
#include "ui/shell/reportmaker.h"
#include "ui/shell/statusline.h"
#include "ui/shell/topbar.h"
#include "ui/shell/workspacecopier.h"
#include "ui/style/choosefile.h"
#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QActionGroup>
#include <QApplication>
#include <QDir>
#include <QMenu>
#include <QMessageBox>
#include <QStandardPaths>

#include <algorithm>
#include <filesystem>

namespace klineage::ui {

QAction *MainWindow::addCommand(const QString &id, const QString &text, const QKeySequence &key,
                                const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WindowShortcut);
    connect(action, &QAction::triggered, this, act);
    addAction(action);
    m_actions->add(action, tr("Window"));
    return action;
}

QAction *MainWindow::command(const QString &id) const
{
    const ActionRegistry::Entry *entry = std::as_const(*m_actions).find(id);
    Q_ASSERT(entry);
    return entry->action;
}

void MainWindow::buildActions()
{
    const auto key = [](auto k) { return QKeySequence(k); };
    addCommand("window.goTo", tr("Go to anything…"), key(Qt::CTRL | Qt::Key_P), [this] {
        m_quickOpen->open(tr("Go to workload, lineage, state or card"),
                          goToEntries(*m_workspace, m_selection->lineageKey(), goTo()));
    });
    addCommand("window.palette", tr("All commands…"), key(Qt::CTRL | Qt::SHIFT | Qt::Key_P),
               [this] { m_quickOpen->open(tr("Do a command"), commandEntries(*m_actions)); });
    addCommand("window.keys", tr("Keys…"), key(Qt::Key_Question), [this] {
        KeyListDialog dialog(m_actions, this);
        dialog.exec();
        if (m_store)
            m_actions->save(m_store->settings());
    });
    addCommand("window.menu", tr("Open the menu"), key(Qt::Key_F10), [this] { m_top->openMainMenu(); });
    addCommand("window.nextPane", tr("Next pane"), key(Qt::Key_F6), [this] { cyclePanes(1); });
    addCommand("window.previousPane", tr("Previous pane"), key(Qt::SHIFT | Qt::Key_F6),
               [this] { cyclePanes(-1); });
    addCommand("window.zoomPane", tr("Zoom the pane, and back"), key(Qt::Key_F9), [this] { zoomPane(); });
    addCommand("window.fullScreen", tr("Full screen, and back"), key(Qt::Key_F11),
               [this] { setWindowState(windowState() ^ Qt::WindowFullScreen); });
    const auto scaleText = [this](double by) {
        m_textScale = by == 0 ? 1 : m_textScale * by;
        Theme::setTextScale(m_textScale);
        m_textScale = textScale();
    };
    addCommand("window.largerText", tr("Larger text"), key(QKeySequence::ZoomIn), [=] { scaleText(1.1); });
    addCommand("window.smallerText", tr("Smaller text"), key(QKeySequence::ZoomOut),
               [=] { scaleText(1 / 1.1); });
    addCommand("window.normalText", tr("Text as designed"), key(Qt::CTRL | Qt::Key_0), [=] { scaleText(0); });
    addCommand("window.export", tr("Export what is visible…"), key(Qt::CTRL | Qt::Key_E),
               [this] { exportFocused(); });
    addCommand("window.report", tr("Report of the lineage, run or experiment…"),
               key(Qt::CTRL | Qt::SHIFT | Qt::Key_E), [this] { writeReport(); });
    addCommand("window.openWorkspace", tr("Open workspace…"), key(Qt::CTRL | Qt::Key_O),
               [this] { chooseWorkspace(); });
    buildFirstActions();
    addCommand("window.copyWorkspace", tr("Copy the workspace…"), {}, [this] { copyWorkspace(); });
    addCommand("window.reload", tr("Read the workspace again"), key(Qt::Key_F5), [this] {
        if (!m_root.isEmpty())
            openWorkspace(m_root);
    });
    addCommand("window.stop", tr("Stop the running trial and run"), key(Qt::SHIFT | Qt::Key_Escape), [this] {
        m_gate->stop();
        m_runner->stop();
        m_report->stop();
        machinePanel()->stop();
        m_reviewer->stop();
    })->setEnabled(false);
    for (std::size_t i = 0; i < windowLayouts().size(); ++i) {
        const WindowLayout &layout = windowLayouts()[i];
        addCommand(
            "window.layout." + layout.id, tr("Layout %1").arg(layout.name),
            QKeySequence(QKeyCombination(Qt::CTRL | Qt::ALT, Qt::Key(Qt::Key_1 + static_cast<int>(i)))),
            [this, i] { m_arranger->apply(static_cast<int>(i)); });
    }
    addCommand("window.resetLayout", tr("Reset the layout"), {}, [this] { m_arranger->reset(); });
    auto *themes = new QActionGroup(this);
    const std::pair<ThemeChoice, QString> choices[] = {{ThemeChoice::System, tr("Theme of the system")},
                                                       {ThemeChoice::Light, tr("Light theme")},
                                                       {ThemeChoice::Dark, tr("Dark theme")}};
    for (const auto &[choice, text] : choices) {
        QAction *action = addCommand("window.theme." + toString(choice), text, {},
                                     [chosen = choice] { Theme::apply(*qApp, chosen); });
        action->setCheckable(true);
        action->setChecked(choice == Theme::choice());
        themes->addAction(action);
    }
    for (const PanelSpec &spec : panelTable())
        addCommand(QStringLiteral("panel.") + QLatin1String(spec.id), tr("Show %1").arg(spec.title), {},
                   [this, id = QString(QLatin1String(spec.id))] { showPanel(id); });
    addCommand("window.about", tr("About KLineage"), {}, [this] {
        QMessageBox::about(
            this, tr("About KLineage"),
            tr("KLineage %1\n\nThe workbench for kernel lineages and SkillCards.\nGPL-3.0-or-later. Qt %2.")
                .arg(QStringLiteral(KLINEAGE_VERSION), QLatin1String(qVersion())));
    });
    addCommand("window.quit", tr("Quit"), key(QKeySequence::Quit), [this] { close(); });
    for (const PanelSpec &spec : panelTable())
        m_actions->addFrom(m_panels.value(QLatin1String(spec.id)), spec.title);
    for (const char *id : {"card.undo", "card.redo"})
        addAction(command(QLatin1String(id)));
    for (const char *id : {"diff.nextHunk", "diff.previousHunk", "diff.nextMoved", "diff.previousMoved"})
        addAction(command(QLatin1String(id))); // also while the diff is hidden

    const auto showKey = [this] {
        m_top->setGoToKey(
            command(QStringLiteral("window.goTo"))->shortcut().toString(QKeySequence::NativeText));
    };
    connect(m_actions, &ActionRegistry::keysChanged, m_top, showKey);
    showKey();
}

void MainWindow::buildMenus()
{
    connect(m_top->workspaceMenu(), &QMenu::aboutToShow, this, &MainWindow::fillWorkspaceMenu);
    QMenu *menu = m_top->mainMenu();
    const auto add = [this](QMenu *to, std::initializer_list<const char *> ids) {
        for (const char *id : ids)
            to->addAction(command(QLatin1String(id)));
    };
    add(menu, {"window.goTo", "window.palette"});
    menu->addSeparator();
    add(menu, {"window.newLineage", "window.newOperator"});
    menu->addSeparator();
    add(menu, {"window.openWorkspace", "window.newWorkspace", "window.copyExample", "window.copyWorkspace",
               "window.importProblems", "window.importCards", "window.importArchive", "experiments.open",
               "window.reload", "window.export", "window.report"});
    menu->addSeparator();
    QMenu *panels = menu->addMenu(tr("Panels"));
    for (DockPanel *dock : m_docks)
        panels->addAction(dock->toggleViewAction());
    panels->addSeparator();
    add(panels, {"window.nextPane", "window.previousPane", "window.zoomPane", "window.fullScreen"});
    QMenu *layouts = menu->addMenu(tr("Layout"));
    for (const WindowLayout &layout : windowLayouts())
        layouts->addAction(command("window.layout." + layout.id));
    layouts->addSeparator();
    add(layouts, {"window.resetLayout"});
    add(menu->addMenu(tr("Theme")), {"window.theme.system", "window.theme.light", "window.theme.dark"});
    menu->addSeparator();
    add(menu, {"runs.start", "runs.deoptimize", "runs.lift", "runs.admit"});
    menu->addSeparator();
    add(menu, {"runs.resume", "runs.pause", "window.stop", "runs.keys"});
    menu->addSeparator();
    add(menu, {"story.present", "story.compare"});
    menu->addSeparator();
    add(menu, {"window.guide", "window.keys", "window.about", "window.quit"});
}

void MainWindow::fillWorkspaceMenu()
{
    QMenu *menu = m_top->workspaceMenu();
    menu->clear();
    for (const char *id :
         {"window.openWorkspace", "window.newWorkspace", "window.copyWorkspace", "window.reload"})
        menu->addAction(command(QLatin1String(id)));
    if (m_session.recentWorkspaces.isEmpty())
        return;
    menu->addSeparator();
    for (const QString &path : std::as_const(m_session.recentWorkspaces))
        menu->addAction(QDir::toNativeSeparators(path), this, [this, path] { openWorkspace(path); });
}

QList<QWidget *> MainWindow::shownPanels() const
{
    QList<QWidget *> shown;
    for (const PanelSpec &spec : panelTable()) {
        QWidget *panel = m_panels.value(QLatin1String(spec.id));
        if (panel->isVisible() && !panel->visibleRegion().isEmpty())
            shown << panel;
    }
    return shown;
}

QWidget *MainWindow::focusedPanel() const
{
    const QWidget *focus = QApplication::focusWidget();
    for (QWidget *panel : m_panels) {
        if (focus && (panel == focus || panel->isAncestorOf(focus)))
            return panel;
    }
    return nullptr;
}

void MainWindow::cyclePanes(int by)
{
    const QList<QWidget *> shown = shownPanels();
    if (shown.isEmpty())
        return;
    const qsizetype at = shown.indexOf(focusedPanel());
    const qsizetype count = shown.size();
    QWidget *panel = shown[at < 0 ? (by > 0 ? 0 : count - 1) : (at + by + count) % count];
    // The panel's own choice, else its first child that takes keys.
    QWidget *target = panel->focusProxy() ? panel->focusProxy() : panel;
    if (target->focusPolicy() == Qt::NoFocus) {
        for (QWidget *child : panel->findChildren<QWidget *>()) {
            if ((child->focusPolicy() & Qt::TabFocus) && child->isVisible() && child->isEnabled()) {
                target = child;
                break;
            }
        }
    }
    target->setFocus(Qt::TabFocusReason);
}

/// The pane with the focus takes the whole window, until it is asked for again.
void MainWindow::zoomPane()
{
    QWidget *focus = QApplication::focusWidget();
    if (m_arranger->isZoomed()) {
        m_centre->show();
        m_arranger->unzoom();
    } else {
        const QWidget *panel = focusedPanel();
        const bool isDock = std::any_of(m_docks.begin(), m_docks.end(),
                                        [panel](const DockPanel *dock) { return dock->panel() == panel; });
        m_arranger->zoom(isDock ? panel : nullptr);
        m_centre->setVisible(!isDock);
    }
    if (focus && focus->isVisible())
        focus->setFocus();
}

void MainWindow::showPanel(const QString &id)
{
    raisePanel(id);
    m_panels.value(id)->setFocus(Qt::ShortcutFocusReason);
}

/// Without the focus.
void MainWindow::raisePanel(const QString &id)
{
    if (m_arranger->isZoomed())
        zoomPane();
    for (DockPanel *dock : m_docks) {
        if (dock->panel() == m_panels.value(id)) {
            dock->reveal();
            dock->show();
            dock->raise();
        }
    }
    m_centre->showPage(id);
}

/// Keys and exports are about what a layout shows: its subject, where that is in front, or the middle when the pane that had the focus is gone.
void MainWindow::focusLayout(const WindowLayout &layout)
{
    const bool isCurrent = windowLayouts()[static_cast<std::size_t>(m_arranger->current())].id == layout.id;
    const QWidget *focus = QApplication::focusWidget();
    if (!isCurrent || m_centre->isWelcoming() || QApplication::activeModalWidget()
        || QApplication::activePopupWidget() || (focus && m_top->isAncestorOf(focus)))
        return;
    const auto subject = std::find_if(m_docks.begin(), m_docks.end(), [&](const DockPanel *dock) {
        return dock->isVisible() && dock->panel() == m_panels.value(layout.subject);
    });
    if (subject != m_docks.end())
        showPanel(layout.subject);
    else if (!focus || !focus->isVisible() || !focusedPanel())
        m_centre->pageWidget()->setFocus(Qt::OtherFocusReason);
}

void MainWindow::exportFocused()
{
    QWidget *panel = focusedPanel() ? focusedPanel() : m_centre->pageWidget();
    // A panel that shows more than the lineage, run or experiment in view says what.
    QString name = panel->property("exportName").toString();
    if (name.isEmpty())
        name = QStringLiteral("%1-%2").arg(m_panels.key(panel), reportSubject().title);
    name.replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString fileName =
        chooseFileToSave(this, tr("Export %1").arg(panel->accessibleName()), name, exportFilters(*panel));
    if (fileName.isEmpty())
        return;
    const QString problem = exportPanel(*panel, fileName);
    m_status->say(problem.isEmpty() ? tr("Exported %1.").arg(fileName) : problem);
}

/// What the pane with the focus is about, else the page in the centre.
MainWindow::ReportSubject MainWindow::reportSubject() const
{
    QWidget *focused = focusedPanel();
    const QString pane = focused ? m_panels.key(focused) : m_centre->page();
    const auto absolute = [](const std::filesystem::path &folder) {
        return QString::fromStdString(std::filesystem::absolute(folder).string());
    };
    const auto *trajectory = qobject_cast<TrajectoryTabs *>(m_panels.value(QStringLiteral("trajectory")));
    const bool isOfRuns = pane == QLatin1String("runs") || pane == QLatin1String("run")
                          || (pane == QLatin1String("trajectory") && trajectory->showsRuns());
    if (const RunEntryPtr run = isOfRuns ? m_runs->current() : nullptr)
        return {run->id(), QLatin1String("run:") + absolute(run->record.directory)};
    const auto *experiments = qobject_cast<ExperimentsPanel *>(m_panels.value(QStringLiteral("experiments")));
    if (const ExperimentEntryPtr entry =
            pane == QLatin1String("experiments") ? experiments->store()->current() : nullptr)
        return {entry->name(), QLatin1String("experiment:") + absolute(entry->experiment.directory)};
    const QString key = m_selection->lineageKey();
    return m_workspace->lineage(key) ? ReportSubject{key, key} : ReportSubject{};
}

void MainWindow::writeReport()
{
    const ReportSubject subject = reportSubject();
    if (subject.name.isEmpty() || m_report->isWorking()) {
        m_status->say(subject.name.isEmpty()
                          ? tr("Choose a lineage, a run or an experiment: a report is of one of them.")
                          : tr("A report is being written; Shift+Esc stops it."));
        return;
    }
    const QString name = QString(subject.title).replace(QLatin1Char('/'), QLatin1Char('-'));
    const QString fileName =
        chooseFileToSave(this, tr("Report of %1").arg(subject.title), name,
                         tr("Web page (*.html);;PDF, A4 (*.pdf);;Markdown, tables alone (*.md)"));
    if (fileName.isEmpty())
        return;
    m_status->say(tr("Writing the report %1…").arg(fileName));
    m_report->make(m_root, subject.name, fileName);
    updateStop();
}

void MainWindow::chooseWorkspace()
{
    const QString root = chooseFolder(this, tr("Open a folder with workloads/ and skills/"), m_root);
    if (!root.isEmpty())
        openWorkspace(root);
}

void MainWindow::copyWorkspace()
{
    if (!m_workspace->isLoaded()) {
        m_status->say(tr("There is no workspace to copy: open one."));
        return;
    }
    const QString parent = chooseFolder(this, tr("Copy the workspace to a new folder in"),
                                        QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation));
    if (!parent.isEmpty())
        copyWorkspaceInto(parent);
}

void MainWindow::copyWorkspaceInto(const QString &parent)
{
    copyInto(m_root, parent);
}

} // namespace klineage::ui
