// SPDX-License-Identifier: GPL-3.0-or-later
// The first minute of MainWindow: the first paint, the welcome, the guide, new workspaces and lineages.
#include "ui/shell/mainwindow.h"

#include "core/workspace/installed.h"
#include "core/workspace/starter.h"
#include "ui/begin/guidebar.h"
#include "ui/begin/importdialog.h"
#include "ui/begin/importform.h"
#include "ui/begin/newlineagedialog.h"
#include "ui/begin/welcomepage.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/statusline.h"
#include "ui/shell/topbar.h"
#include "ui/shell/workspacecopier.h"
#include "ui/style/choosefile.h"

#include <QApplication>
#include <QDir>
#include <QDragEnterEvent>
#include <QMimeData>
#include <QStandardPaths>
#include <QTimer>
#include <QUrl>

#include <utility>

namespace klineage::ui {

namespace {

/// A folder of that name in `parent` that is not there yet.
QString freeFolder(const QDir &parent)
{
    QString name = QStringLiteral("klineage-workspace");
    for (int i = 2; parent.exists(name); ++i)
        name = QStringLiteral("klineage-workspace-%1").arg(i);
    return parent.filePath(name);
}

QString documents()
{
    return QStandardPaths::writableLocation(QStandardPaths::DocumentsLocation);
}

} // namespace

void MainWindow::buildFirstActions()
{
    addCommand("window.newLineage", tr("New lineage from my kernel…"), QKeySequence(Qt::CTRL | Qt::Key_N),
               [this] { beginLineage(); });
    addCommand("window.newWorkspace", tr("New workspace from the template…"), {},
               [this] { createWorkspaceIn({}); });
    addCommand("window.copyExample", tr("Copy the example workspace…"), {}, [this] { copyExample(); });
    addCommand("window.newOperator", tr("New operator from a Python function…"), {},
               [this] { showImport(ImportRunner::Kind::Operator); });
    addCommand("window.importProblems", tr("Import problems…"), {},
               [this] { showImport(ImportRunner::Kind::Problems); });
    addCommand("window.importCards", tr("Import cards…"), {},
               [this] { showImport(ImportRunner::Kind::Cards); });
    addCommand("window.importArchive", tr("Import a search's archive…"), {},
               [this] { showImport(ImportRunner::Kind::Archive); });
    addCommand("window.guide", tr("Show the guide"), {}, [this] {
        m_session.guideDismissed = false;
        showGuide(true);
    });
}

void MainWindow::connectFirst()
{
    setAcceptDrops(true);
    WelcomePage *welcome = m_centre->welcome();
    connect(welcome, &WelcomePage::openRequested, this, &MainWindow::chooseWorkspace);
    connect(welcome, &WelcomePage::createRequested, this, &MainWindow::createWorkspaceIn);
    connect(welcome, &WelcomePage::exampleRequested, this, &MainWindow::copyExample);
    connect(welcome, &WelcomePage::newLineageRequested, this, [this] { beginLineage(); });
    connect(welcome, &WelcomePage::newOperatorRequested, command("window.newOperator"), &QAction::trigger);
    connect(welcome, &WelcomePage::importProblemsRequested, command("window.importProblems"),
            &QAction::trigger);
    connect(welcome, &WelcomePage::importCardsRequested, command("window.importCards"), &QAction::trigger);
    connect(welcome, &WelcomePage::importArchiveRequested, command("window.importArchive"),
            &QAction::trigger);
    m_newLineage->setKeys(m_keys);
    connect(welcome, &WelcomePage::recentRequested, this, &MainWindow::openWorkspace);
    m_actions->addFrom(m_centre->guide(), tr("Window"));
    connect(m_centre->guide(), &GuideBar::dismissed, this, [this] {
        m_session.guideDismissed = true;
        if (m_store)
            m_store->save(sessionState());
        showGuide(false);
        m_status->say(tr("The command \"Show the guide\" brings it back."));
    });
    connect(m_actions, &ActionRegistry::keysChanged, this, &MainWindow::updateGuide);
    connect(m_selection, &Selection::lineageChanged, this, &MainWindow::updateGuide);
    connect(m_selection, &Selection::rowChanged, this, &MainWindow::updateGuide);
    // Each line is ticked by what it tells.
    GuideBar *guide = m_centre->guide();
    connect(m_selection, &Selection::lineageChanged, guide, [guide] { guide->tick(0); });
    connect(m_selection, &Selection::rowChanged, guide, [guide] { guide->tick(0); });
    for (const char *walk : {"lineage.nextStep", "lineage.previousStep"})
        connect(command(QLatin1String(walk)), &QAction::triggered, guide, [guide] { guide->tick(1); });
    for (const char *last :
         {"card.approve", "card.reject", "card.needEvidence", "window.keys", "window.newLineage"})
        connect(command(QLatin1String(last)), &QAction::triggered, guide, [guide] { guide->tick(2); });
    connect(m_devices, &DeviceMonitor::changed, m_newLineage, &NewLineageDialog::showDevice);
    connect(m_newLineage, &NewLineageDialog::message, m_status, &StatusLine::say);
    m_actions->addFrom(m_newLineage, tr("New lineage"));
    m_newLineage->addAction(command(QStringLiteral("window.stop")));
    connect(m_newLineage, &NewLineageDialog::begun, this, [this](const QString &key) {
        m_wantedTarget = key + QStringLiteral("/K00");
        openWorkspace(m_root);
        m_status->say(tr("Began the lineage %1.").arg(key));
    });
}

void MainWindow::showNoWorkspace(const QString &why)
{
    furnish();
    m_reading = false;
    m_workspaceError = why;
    m_top->setWorkspaceName({}, {});
    m_top->setReadOnly(false);
    showWelcome(why);
}

void MainWindow::showWelcome(const QString &why)
{
    WelcomePage::Offer offer;
    offer.why = why;
    if (!m_root.isEmpty() && QDir(m_root).exists() && isFreeForWorkspace(m_root.toStdString()))
        offer.createIn = m_root;
    offer.hasExample = !exampleWorkspace().isEmpty();
    offer.canBegin = m_workspace->isLoaded() && m_workspaceError.isEmpty();
    for (const QString &folder : std::as_const(m_session.recentWorkspaces)) {
        if (folder != m_root && QDir(folder).exists())
            offer.recent << folder;
    }
    const bool wasWelcoming = m_centre->isWelcoming();
    m_centre->welcome()->setOffer(offer);
    m_centre->showWelcome(true);
    showGuide(false);
    if (!wasWelcoming)
        m_centre->welcome()->setFocus(Qt::OtherFocusReason);
}

/// A workspace without workloads has nothing to look at; one without lineages has, in the library.
void MainWindow::welcomeIfEmpty()
{
    const bool isEmpty = m_workspace->workspace().workloads.empty() && m_workspace->workspace().cards.empty();
    if (isEmpty)
        showWelcome(tr("%1 is a workspace with nothing in it yet.").arg(QDir::toNativeSeparators(m_root)));
    else
        m_centre->showWelcome(false);
}

void MainWindow::showGuide(bool shown)
{
    updateGuide();
    m_centre->guide()->untick();
    m_centre->guide()->setVisible(shown);
}

/// With the keys as they are now: they may have been changed.
void MainWindow::updateGuide()
{
    const auto key = [this](const char *id) {
        const QString text = command(QLatin1String(id))->shortcut().toString(QKeySequence::NativeText);
        return text.isEmpty() ? tr("(no key)") : text;
    };
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const bool hasStates = lineage && !lineage->states.empty();
    const bool isFirst =
        hasStates && m_selection->row() == QString::fromStdString(lineage->states.front().id);
    const QString seen =
        !hasStates
            ? tr("A lineage is the way of a kernel from K00 to K*, step by step. Choose one in the library.")
        : isFirst
            ? tr("You see %1, the way of a kernel from K00 to K* = %2 in recorded steps; here is %3, where it begins.")
                  .arg(m_selection->lineageKey(), QString::fromStdString(lineage->states.back().id),
                       m_selection->row())
        : !lineage->findState(m_selection->row().toStdString())
            ? tr("You see %1, the way of a kernel from K00 to K* = %2 in recorded steps; here is something that was tried.")
                  .arg(m_selection->lineageKey(), QString::fromStdString(lineage->states.back().id))
            : tr("You see %1, the way of a kernel from K00 to K* = %2 in recorded steps; here is %3 beside the state before it.")
                  .arg(m_selection->lineageKey(), QString::fromStdString(lineage->states.back().id),
                       m_selection->row());
    m_centre->guide()->setLines(
        {seen,
         tr("%1 and %2 walk from step to step; diff, profile and card follow.")
             .arg(key("lineage.nextStep"), key("lineage.previousStep")),
         tr("%1 approves the card of the step, %2 rejects it, %3 asks for evidence; %4 lists all keys, %5 begins a lineage from a kernel of yours.")
             .arg(key("card.approve"), key("card.reject"), key("card.needEvidence"), key("window.keys"),
                  key("window.newLineage"))});
}

void MainWindow::createWorkspaceIn(const QString &folder)
{
    QString place = folder;
    if (place.isEmpty()) {
        const QString chosen = chooseFolder(
            this, tr("Create a workspace in this folder, or in a new one below it"), documents());
        if (chosen.isEmpty())
            return;
        place = isFreeForWorkspace(chosen.toStdString()) ? chosen : freeFolder(QDir(chosen));
    }
    const Status created = klineage::createWorkspace(place.toStdString()); // a handful of small files
    if (!created) {
        sayProblem(QString::fromStdString(created.error().message));
        return;
    }
    openWorkspace(place);
    m_status->say(tr("Created the workspace %1.").arg(QDir::toNativeSeparators(place)));
}

/// Of the installation, else the one around this program.
QString MainWindow::exampleWorkspace()
{
    if (const auto installed = installedWorkspace())
        return QString::fromStdString(installed->string());
    const auto around = findWorkspace(QCoreApplication::applicationDirPath().toStdString());
    return around ? QString::fromStdString(around->string()) : QString();
}

void MainWindow::copyExample()
{
    const QString example = exampleWorkspace();
    if (example.isEmpty()) {
        m_status->say(tr("This program lies in no installation, so it has no example beside it."));
        return;
    }
    const QString parent = chooseFolder(this, tr("Copy the example to a new folder in"), documents());
    if (!parent.isEmpty())
        copyInto(example, parent);
}

void MainWindow::copyInto(const QString &from, const QString &parent)
{
    if (m_copier->isWorking()) {
        m_status->say(tr("A copy is being made."));
        return;
    }
    const QString to = freeFolder(QDir(parent));
    m_status->say(tr("Copying the workspace to %1…").arg(QDir::toNativeSeparators(to)));
    m_copier->copy(from, to);
}

void MainWindow::beginLineage(const QString &file)
{
    if (m_reading) {
        m_wantsKernel = true;
        m_wantedKernel = file;
        return;
    }
    if (!m_workspace->isLoaded() || !m_workspaceError.isEmpty()) {
        m_status->say(tr("A lineage lies in a workspace: open or create one first."));
        return;
    }
    m_newLineage->begin(file);
}

/// Made when it is first wanted; what it brought in is read when it is closed, and a lineage shown.
void MainWindow::showImport(ImportRunner::Kind kind)
{
    if (!m_workspace->isLoaded() || !m_workspaceError.isEmpty()) {
        m_status->say(tr("What is imported lies in a workspace: open or create one first."));
        return;
    }
    auto *dialog = findChild<ImportDialog *>();
    if (!dialog) {
        dialog = new ImportDialog(this);
        connect(dialog, &ImportDialog::imported, this, [this](const QString &lineage) {
            if (!lineage.isEmpty())
                m_wantedTarget = lineage;
            openWorkspace(m_root);
            if (!lineage.isEmpty())
                m_status->say(tr("Imported the lineage %1; nothing of it has been gated.").arg(lineage));
        });
    }
    const Workspace &workspace = m_workspace->workspace();
    std::vector<ImportTarget> targets;
    for (const workload::Workload &workload : workspace.workloads) {
        ImportTarget target{QString::fromStdString(workload.name), {}};
        for (const lineage::Lineage &lineage : workspace.lineages) {
            if (lineage.workload == workload.name)
                target.platforms << QString::fromStdString(lineage.platform);
        }
        target.platforms.removeDuplicates();
        targets.push_back(std::move(target));
    }
    dialog->begin(kind, m_root, std::move(targets),
                  m_selection->lineageKey().section(QLatin1Char('/'), 0, 0));
}

void MainWindow::dragEnterEvent(QDragEnterEvent *event)
{
    const QList<QUrl> urls = event->mimeData()->urls();
    if (urls.size() == 1 && NewLineageDialog::isKernelFile(urls.front().toLocalFile()))
        event->acceptProposedAction();
}

void MainWindow::dropEvent(QDropEvent *event)
{
    event->acceptProposedAction();
    beginLineage(event->mimeData()->urls().value(0).toLocalFile());
}

/// What is in front has to be there for the first paint, and nothing else.

} // namespace klineage::ui
