// SPDX-License-Identifier: GPL-3.0-or-later
// Keys of MainWindow that act across panels: letters in lists, graphs and diff, and the walk from card to card.
#include "ui/shell/mainwindow.h"

#include "core/lineage/largeststeps.h"
#include "core/lineage/step.h"
#include "core/workspace/workspace.h"
#include "ui/cards/cardpanel.h"
#include "ui/cards/cardreviewer.h"
#include "ui/cards/verdictbar.h"
#include "ui/diff/diffpanel.h"
#include "ui/diff/view/diffview.h"
#include "ui/editor/editorpanel.h"
#include "ui/graph/lineagepanel.h"
#include "ui/graph/lineageview.h"
#include "ui/library/librarypanel.h"
#include "ui/models/selection.h"
#include "ui/models/viewed.h"
#include "ui/models/workspacemodel.h"
#include "ui/shell/centre.h"
#include "ui/shell/commands/quickopen.h"
#include "ui/shell/devicemonitor.h"
#include "ui/shell/docks/dockarranger.h"
#include "ui/shell/statusline.h"
#include "ui/story/storypanel.h"
#include "ui/style/format.h"
#include "ui/style/keyscope.h"

#include <QAbstractScrollArea>
#include <QApplication>
#include <QKeyEvent>
#include <QToolTip>

#include <algorithm>
#include <iterator>
#include <utility>

namespace klineage::ui {

namespace {

/// The lists, graphs and texts of a panel: where a letter is a command. Fields and editors keep their letters themselves.
QList<QWidget *> viewsOf(QWidget *panel)
{
    QList<QWidget *> views;
    for (QWidget *child : panel->findChildren<QWidget *>()) {
        if (qobject_cast<QAbstractScrollArea *>(child) || child->inherits("QCustomPlot")
            || child->inherits("klineage::ui::PictureCanvas"))
            views << child;
    }
    return views;
}

/// Commands that walk from change to change: what they walk through depends on where the focus is.
struct Walk {
    const char *id;
    int by;
    bool bySamples;
};
constexpr Walk walks[] = {{"diff.nextHunk", 1, false},
                          {"diff.previousHunk", -1, false},
                          {"diff.nextMoved", 1, true},
                          {"diff.previousMoved", -1, true}};

bool isWalk(const QString &id)
{
    return std::any_of(std::begin(walks), std::end(walks),
                       [&id](const Walk &walk) { return id == QLatin1String(walk.id); });
}

/// As if the key had been pressed where the focus is.
void pressInFocus(Qt::Key key, Qt::KeyboardModifiers modifiers)
{
    if (QWidget *focus = QApplication::focusWidget()) {
        QKeyEvent press(QEvent::KeyPress, key, modifiers);
        QCoreApplication::sendEvent(focus, &press);
    }
}

} // namespace

/// Letters that do what the arrow keys do, in all lists and texts.
void MainWindow::buildRowKeys()
{
    QList<QAction *> rows;
    const auto add = [this, &rows](const char *id, const QString &text, const QKeySequence &key,
                                   Qt::Key arrow, Qt::KeyboardModifiers modifiers = Qt::NoModifier) {
        QAction *action = addCommand(id, text, key, [=] { pressInFocus(arrow, modifiers); });
        removeAction(action);
        actInAllPanes(action);
        rows << action;
    };
    add("rows.next", tr("Next row"), QKeySequence(Qt::Key_J), Qt::Key_Down);
    add("rows.previous", tr("Previous row"), QKeySequence(Qt::Key_K), Qt::Key_Up);
    add("rows.selectNext", tr("Select the next row too"), QKeySequence(Qt::SHIFT | Qt::Key_J), Qt::Key_Down,
        Qt::ShiftModifier);
    add("rows.selectPrevious", tr("Select the previous row too"), QKeySequence(Qt::SHIFT | Qt::Key_K),
        Qt::Key_Up, Qt::ShiftModifier);
    for (QWidget *panel : std::as_const(m_panels)) {
        for (QWidget *view : viewsOf(panel))
            view->addActions(rows);
    }
    qobject_cast<StoryPanel *>(panel(QStringLiteral("story")))->addComparisonCommands(rows);
}

void MainWindow::buildPaneKeys()
{
    buildRowKeys();
    connectWalk();
    // Qt leaves a tool tip where the mouse is when keys go elsewhere.
    connect(m_selection, &Selection::rowChanged, this, [] { QToolTip::hideText(); });
    connect(m_selection, &Selection::lineageChanged, this, [] { QToolTip::hideText(); });
    QAction *viewed = addCommand("review.viewed", tr("Viewed, go on to the next"), QKeySequence(Qt::Key_V),
                                 [this] { markViewed(); });
    removeAction(viewed);
    actInAllPanes(viewed);
    addCommand("review.nextCard", tr("Next card"), QKeySequence(Qt::CTRL | Qt::Key_Down),
               [this] { stepCard(1); });
    addCommand("review.previousCard", tr("Previous card"), QKeySequence(Qt::CTRL | Qt::Key_Up),
               [this] { stepCard(-1); });

    addCommand("lineage.largestStep", tr("Go to the largest step of the lineage, and on to the next largest"),
               QKeySequence(Qt::ALT | Qt::Key_G), [this] { goToLargestStep(); });
    addCommand("lineage.largestSteps", tr("Largest steps of all lineages…"),
               QKeySequence(Qt::ALT | Qt::SHIFT | Qt::Key_G), [this] {
                   m_quickOpen->open(
                       tr("Largest steps of all lineages: gain over the state before, paired, 95 % interval"),
                       largestStepEntries(*m_workspace, goTo()));
               });

    QList<QAction *> letters;
    for (const ActionRegistry::Entry &entry : m_actions->entries()) {
        if (entry.isPaneWide())
            letters << entry.action;
        // What walks through the diff, or changes it, shows it.
        if (!isWalk(entry.id()) && entry.id().startsWith(QLatin1String("diff."))
            && (entry.isPaneWide() || entry.isWindowWide()))
            connect(entry.action, &QAction::triggered, m_centre,
                    [this] { m_centre->showPage(QStringLiteral("diff")); });
    }
    for (const char *id :
         {"library", "lineage", "diff", "card", "profile", "machine", "trajectory", "story"}) {
        QList<QAction *> meant = letters;
        for (const ActionRegistry::Entry &own : m_actions->entries()) {
            if (own.id().startsWith(QLatin1String(id) + QLatin1Char('.')))
                meant.removeIf([&own](const QAction *letter) { return isCounterpart(letter, own.action); });
        }
        for (QWidget *view : viewsOf(panel(QLatin1String(id))))
            view->addActions(meant);
    }
}

/// One key for the next change, wherever the focus is.
void MainWindow::connectWalk()
{
    const QWidget *diff = panel(QStringLiteral("diff"));
    for (const Walk &walk : walks) {
        QAction *action = command(QLatin1String(walk.id));
        disconnect(action, &QAction::triggered, diff, nullptr);
        connect(action, &QAction::triggered, this, [this, walk] {
            if (walk.bySamples)
                walkSamples(walk.by);
            else
                walkChanges(walk.by);
        });
    }
}

/// The draft that is being edited, or null.
EditorPanel *MainWindow::focusedDraft() const
{
    auto *editor = qobject_cast<EditorPanel *>(panel(QStringLiteral("editor")));
    return focusedPanel() == editor && editor->draftCount() > 0 ? editor : nullptr;
}

void MainWindow::walkSamples(int by)
{
    if (EditorPanel *editor = focusedDraft()) {
        editor->goToSampled(by);
        return;
    }
    auto *diff = qobject_cast<DiffPanel *>(panel(QStringLiteral("diff")));
    if (by > 0)
        diff->goToNextMoved();
    else
        diff->goToPreviousMoved();
    m_centre->showPage(QStringLiteral("diff"));
}

/// In an editor that of what is edited; elsewhere that of the diff, which is shown. The focus stays where it is.
void MainWindow::walkChanges(int by)
{
    const QWidget *focused = focusedPanel();
    if (EditorPanel *editor = focusedDraft()) {
        editor->goToPlace(by);
        return;
    }
    auto *diff = qobject_cast<DiffPanel *>(panel(QStringLiteral("diff")));
    const auto *card = qobject_cast<CardPanel *>(panel(QStringLiteral("card")));
    if (focused == card && card->isEditing()) {
        // Another step would be another card, and the end of the edit.
        if (!(by > 0 ? diff->view()->goToNextHunk() : diff->view()->goToPreviousHunk()))
            m_status->say(by > 0 ? tr("This is the last change of the step whose card is being edited.")
                                 : tr("This is the first change of the step whose card is being edited."));
    } else if (by > 0) {
        diff->goToNextHunk();
    } else {
        diff->goToPreviousHunk();
    }
    m_centre->showPage(QStringLiteral("diff"));
}

void MainWindow::connectReview()
{
    auto *library = qobject_cast<LibraryPanel *>(panel(QStringLiteral("library")));
    auto *card = qobject_cast<CardPanel *>(panel(QStringLiteral("card")));
    library->setViewed(m_viewed);
    connect(m_devices, &DeviceMonitor::changed, library,
            [this, library] { library->setDevices(m_devices->devices()); });
    qobject_cast<LineagePanel *>(panel(QStringLiteral("lineage")))->view()->setViewed(m_viewed);
    connect(library, &LibraryPanel::cardChosen, this, &MainWindow::followCard);
    connect(m_arranger, &DockArranger::applied, library,
            [library](const WindowLayout &layout) { library->setCardsFirst(layout.cardsFirst); });
    library->setCardsFirst(windowLayouts()[static_cast<std::size_t>(m_arranger->current())].cardsFirst);
    connect(command(QStringLiteral("library.firstToReview")), &QAction::triggered, this, [this, library] {
        library->isVisible() ? raisePanel(QStringLiteral("card")) : showPanel(QStringLiteral("card"));
    });
    connect(card, &CardPanel::message, m_status, &StatusLine::say);
    auto *diff = qobject_cast<DiffPanel *>(panel(QStringLiteral("diff")));
    connect(diff, &DiffPanel::commentGiven, m_reviewer, &CardReviewer::comment);
    connect(card, &CardPanel::commentWanted, this, [this, diff](const QString &id) {
        m_centre->showPage(QStringLiteral("diff"));
        diff->showComment(id);
    });
    connect(card, &CardPanel::judged, this, [this, library](const QString &judged) {
        library->unmark();
        if (m_triaging)
            goToUnreviewed(judged);
    });
    connect(m_reviewer, &CardReviewer::progressed, this, [this](int done, int total) {
        m_status->say(tr("%1 of %2 cards are written; Shift+Esc stops.").arg(done).arg(total));
        updateStop();
    });
    connect(m_reviewer, &CardReviewer::written, this, &MainWindow::updateStop);
    connect(card, &CardPanel::cardRequested, library, &LibraryPanel::chooseCard);
    connect(card, &CardPanel::admitRequested, this,
            [this] { command(QStringLiteral("runs.admit"))->trigger(); });
    connect(card, &CardPanel::liftRequested, this,
            [this] { command(QStringLiteral("runs.lift"))->trigger(); });
    // What is taken back is looked at: it is selected, its panel is in front, and its row is in view where a verdict moves it to.
    connect(m_reviewer, &CardReviewer::undoing, this, [this, library, card](const QString &name) {
        if (name != m_selection->card())
            library->chooseCard(name);
        if (!shownPanels().contains(card))
            raisePanel(QStringLiteral("card"));
        m_revealsUndone = true;
    });
    connect(m_reviewer, &CardReviewer::written, library, [this, library] {
        if (std::exchange(m_revealsUndone, false))
            library->revealCard();
    });
    connect(m_reviewer, &CardReviewer::failed, this, [this] { m_revealsUndone = false; });
    connect(m_reviewer, &CardReviewer::undoingComment, m_centre,
            [this] { m_centre->showPage(QStringLiteral("diff")); });
}

/// The page of the card stays while cards, or steps, are gone through one after the other; from the one to the other it is the first again.
void MainWindow::setTriaging(bool triaging)
{
    if (std::exchange(m_triaging, triaging) != triaging)
        qobject_cast<CardPanel *>(panel(QStringLiteral("card")))->showFields();
}

/// A card is looked at with the step that it was lifted from.
void MainWindow::followCard(const QString &name)
{
    setTriaging(true);
    const skills::CardRecord *record = m_workspace->card(name);
    if (!record)
        return;
    for (const skills::Citation &citation : record->card.evidence) {
        const QString cited = QString::fromStdString(citation);
        const QString key = cited.section(QLatin1Char('/'), 0, 1);
        const QString row = cited.section(QLatin1Char('/'), 2);
        const lineage::Lineage *lineage = m_workspace->lineage(key);
        if (!lineage || !lineage->transitionTo(row.toStdString()))
            continue;
        m_selection->lookUp(key, row);
        return;
    }
}

/// The focus goes to what was gone to: the next key is meant for it.
GoTo MainWindow::goTo()
{
    auto *library = qobject_cast<LibraryPanel *>(panel(QStringLiteral("library")));
    return {[this, library](const QString &lineage, const QString &row) {
                m_selection->setLineage(lineage, row);
                library->showLineage();
                panel(QStringLiteral("lineage"))->setFocus(Qt::ShortcutFocusReason);
            },
            [library](const QString &card) {
                library->chooseCard(card);
                library->setFocus(Qt::ShortcutFocusReason);
            }};
}

void MainWindow::stepCard(int by)
{
    auto *library = qobject_cast<LibraryPanel *>(panel(QStringLiteral("library")));
    const QString next = library->neighbourCard(m_selection->card(), by);
    if (next.isEmpty())
        m_status->say(by > 0 ? tr("This is the last card of the library.")
                             : tr("This is the first card of the library."));
    else
        library->chooseCard(next);
}

void MainWindow::goToLargestStep()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto steps = lineage ? lineage::largestSteps(*lineage) : std::vector<lineage::LargeStep>();
    // On from where this went last, and else from the beginning.
    const bool isThere = m_largeStep == std::pair(m_selection->lineageKey(), m_selection->row());
    const lineage::LargeStep *step =
        lineage::largestStepAfter(steps, isThere ? m_selection->row().toStdString() : std::string());
    if (!step) {
        m_status->say(tr("No step of this lineage was timed beside the state before it."));
        return;
    }
    m_selection->setRow(QString::fromStdString(step->to));
    m_largeStep = {m_selection->lineageKey(), m_selection->row()};
    m_status->say(tr("%1 → %2 is number %3 of %4 steps by what it gained: %5, paired.")
                      .arg(QString::fromStdString(step->from), QString::fromStdString(step->to))
                      .arg(step - steps.data() + 1)
                      .arg(steps.size())
                      .arg(formatSpeedup(step->speedup.value)));
}

/// After a verdict: the next card that has none.
void MainWindow::goToUnreviewed(const QString &judged)
{
    auto *library = qobject_cast<LibraryPanel *>(panel(QStringLiteral("library")));
    QString next = judged;
    do {
        next = library->neighbourCard(next, 1);
    } while (!next.isEmpty() && m_workspace->card(next) && m_workspace->card(next)->standingReview());
    if (next.isEmpty())
        m_status->say(tr("No card after %1 waits for a review.").arg(judged));
    else
        library->chooseCard(next);
}

/// The card, or after one question all that are selected together; then the next card.
void MainWindow::markCardsViewed()
{
    auto *library = qobject_cast<LibraryPanel *>(panel(QStringLiteral("library")));
    const QStringList marked = m_selection->markedCards();
    const auto mark = [this, library](const QStringList &names) {
        QStringList keys;
        for (const QString &name : names) {
            if (const skills::CardRecord *card = m_workspace->card(name))
                keys << Viewed::cardKey(name, card->card.revision);
        }
        // Before they are marked: the filter may leave out what was viewed.
        const QString next = library->neighbourCard(names.back(), 1);
        library->unmark();
        m_viewed->mark(keys);
        if (next.isEmpty())
            m_status->say(tr("This is the last card of the library."));
        else
            library->chooseCard(next);
    };
    if (marked.size() < 2) {
        mark(marked.isEmpty() ? QStringList{m_selection->card()} : marked);
        return;
    }
    qobject_cast<CardPanel *>(panel(QStringLiteral("card")))
        ->verdicts()
        ->confirm(tr("Mark %1 cards as viewed? (Enter marks them, Esc cancels)").arg(marked.size()),
                  tr("Mark %1").arg(marked.size()), [mark, marked] { mark(marked); });
}

void MainWindow::markViewed()
{
    const QWidget *focused = focusedPanel();
    const skills::CardRecord *card = m_workspace->card(m_selection->card());
    const bool inLibrary = focused == panel(QStringLiteral("library"));
    const bool onCard = (inLibrary && !m_selection->markedCards().isEmpty())
                        || (card && (focused == panel(QStringLiteral("card")) || (inLibrary && m_triaging)));
    if (onCard) {
        markCardsViewed();
        return;
    }
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto row = lineage ? lineage::findRow(*lineage, m_selection->row().toStdString()) : std::nullopt;
    if (!row)
        return;
    m_viewed->mark(Viewed::stepKey(m_selection->lineageKey(), m_selection->row(),
                                   row->trial ? QString::fromStdString(row->trial->id) : QString()));
    command(QStringLiteral("lineage.nextStep"))->trigger();
}

} // namespace klineage::ui
