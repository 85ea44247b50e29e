// SPDX-License-Identifier: GPL-3.0-or-later
// MainWindow from its frame to all of its panels: what the first paint shows, what comes after it, layouts and the session.
#include "ui/shell/mainwindow.h"

#include "ui/graph/lineagepanel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/docks/dockpanel.h"
#include "ui/shell/panels.h"
#include "ui/shell/problemsmodel.h"
#include "ui/shell/topbar.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/theme.h"

#include <QCloseEvent>
#include <QTimer>

namespace klineage::ui {

namespace {

constexpr int deviceDelayMs = 250; // after the first paint: asking starts a process that loads drivers

} // namespace

/// What the first paint shows: bars, and the places of panels in the first layout.
void MainWindow::buildFrame()
{
    std::vector<Centre::Page> pages;
    for (const PanelSpec &spec : panelTable()) {
        const QString id = QLatin1String(spec.id);
        if (spec.place == PanelPlace::Centre) {
            const bool followsLineage = id != QLatin1String("run") && id != QLatin1String("experiments")
                                        && id != QLatin1String("compare");
            pages.push_back({id, spec.title, followsLineage});
        } else {
            m_docks.push_back(new DockPanel(id, spec.title, this));
        }
    }
    m_centre = new Centre(m_workspace, m_selection, pages);
    setCentralWidget(m_centre);
    m_arranger = new DockArranger(this, m_docks);
    connectLayouts();
    applyLayout(QStringLiteral("review"));
}

void MainWindow::connectLayouts()
{
    connect(m_arranger, &DockArranger::applying, this,
            [this](const WindowLayout &layout) { Theme::setTextScale(layout.textScale * m_textScale); });
    connect(m_arranger, &DockArranger::applied, this, [this](const WindowLayout &layout) {
        m_centre->show(); // another layout ends a zoom
        m_centre->showPage(layout.centre);
        m_top->layoutSwitch()->setCurrentIndex(m_arranger->current());
        if (isVisible() && m_furnished)
            QTimer::singleShot(0, this, [this, layout] { focusLayout(layout); });
        if (m_arranger->lastStateWasDamaged())
            m_problems->add({ProblemsModel::Severity::Notice,
                             {},
                             tr("The saved arrangement of the layout %1 could not be used and starts anew.")
                                 .arg(layout.name),
                             {}});
    });
}

bool MainWindow::applyLayout(const QString &id)
{
    const int layout = findLayout(id);
    if (layout < 0)
        return false;
    m_arranger->apply(layout);
    return true;
}

void MainWindow::setVisible(bool visible)
{
    if (visible && !m_painted) {
        m_centre->revealFront();
        m_arranger->revealFront();
    }
    QMainWindow::setVisible(visible);
}

/// The others, one at a time, so that what a person does meanwhile is not kept waiting.
void MainWindow::revealPanels()
{
    m_revealed = !m_arranger->revealNext() && !m_centre->revealNext();
    if (!m_revealed)
        QTimer::singleShot(0, this, &MainWindow::revealPanels);
}

bool MainWindow::event(QEvent *event)
{
    const bool handled = QMainWindow::event(event);
    if (event->type() == QEvent::Paint && !m_painted) {
        m_painted = true;
        emit firstPainted();
        QMetaObject::invokeMethod(this, &MainWindow::afterFirstPaint, Qt::QueuedConnection);
        QTimer::singleShot(deviceDelayMs, m_devices, &DeviceMonitor::refresh);
    }
    return handled;
}

void MainWindow::afterFirstPaint()
{
    if (!m_furnished) {
        furnish();
        m_centre->revealFront();
        m_arranger->revealFront();
        m_arranger->windowShown(); // what panels need at least is known now
        panel(QStringLiteral("lineage"))->setFocus();
        focusSubject();
    }
    m_workspace->release();
    QTimer::singleShot(0, this, &MainWindow::revealPanels);
}

/// The focus is where it would be, had the layout been chosen by hand.
void MainWindow::focusSubject()
{
    const WindowLayout &layout = windowLayouts()[static_cast<std::size_t>(m_arranger->current())];
    if (m_furnished && !layout.subject.isEmpty())
        focusLayout(layout);
}

void MainWindow::showEvent(QShowEvent *event)
{
    QMainWindow::showEvent(event);
    if (!m_painted) {
        m_workspace->hold();
        QTimer::singleShot(0, this, &MainWindow::focusSubject);
    }
    // Once the event loop runs, the window has the size that it will keep.
    QTimer::singleShot(0, m_arranger, &DockArranger::windowShown);
}

void MainWindow::closeEvent(QCloseEvent *event)
{
    if (m_store && m_furnished) {
        m_store->save(sessionState());
        m_actions->save(m_store->settings());
    }
    event->accept();
}

void MainWindow::restoreSession(const SessionState &state)
{
    m_session = state;
    if (!state.geometry.isEmpty() && !restoreGeometry(state.geometry))
        m_problems->add(
            {ProblemsModel::Severity::Notice, {}, tr("The window's saved place could not be used."), {}});
    m_arranger->setStates(state.layoutStates);
    if (state.layoutStates.contains(state.layout) || findLayout(state.layout) != m_arranger->current())
        m_arranger->restart(findLayout(state.layout));
    m_centre->showPage(state.page);
    showSession();
}

SessionState MainWindow::sessionState()
{
    if (!m_furnished)
        return m_session;
    SessionState state = m_session;
    state.geometry = saveGeometry();
    state.layoutStates = m_arranger->states();
    state.layout = windowLayouts()[static_cast<std::size_t>(m_arranger->current())].id;
    state.page = m_centre->page();
    state.workspace = m_root;
    state.lineage = m_selection->lineageKey();
    state.row = m_selection->row();
    state.baseline = m_selection->baseline();
    state.card = m_selection->card();
    state.theme = toString(Theme::choice());
    const auto *lineage = qobject_cast<LineagePanel *>(panel(QStringLiteral("lineage")));
    state.forward = lineage->direction() == Direction::Forward;
    return state;
}

void MainWindow::keepSessionIn(SessionStore *store)
{
    m_store = store;
    showSession();
}

/// What panels and commands have of a session, once they are there.
void MainWindow::showSession()
{
    if (!m_furnished)
        return;
    qobject_cast<LineagePanel *>(panel(QStringLiteral("lineage")))
        ->setDirection(m_session.forward ? Direction::Forward : Direction::Backward);
    if (m_store)
        m_actions->restore(m_store->settings());
}

} // namespace klineage::ui
