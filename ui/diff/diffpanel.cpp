// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/diffpanel.h"

#include "ui/diff/commentbar.h"
#include "ui/diff/sideheader.h"
#include "ui/diff/view/diffview.h"
#include "ui/highlight/findbar.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"

#include <QAction>
#include <QEvent>
#include <QInputDialog>
#include <QLabel>
#include <QTabBar>
#include <QTimer>
#include <QToolButton>

#include <algorithm>
#include <utility>

namespace klineage::ui {

namespace {

constexpr int busyAfterMs = 100;

DocumentPtr messageDocument(const QString &message)
{
    return makeDocument(nullptr, makeSideMessage(message), {});
}

} // namespace

DiffPanel::DiffPanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_tabs(new QTabBar(this))
    , m_left(new SideHeader(this))
    , m_right(new SideHeader(this))
    , m_view(new DiffView(this))
    , m_find(new FindBar(this, m_view, QStringLiteral("diff"), tr("Find on both sides")))
    , m_commentBar(new CommentBar(this))
    , m_hunks(new QLabel(this))
    , m_busy(new QLabel(tr("Comparing…"), this))
    , m_busyTimer(new QTimer(this))
    , m_toggles(new QWidget(this))
    , m_viewMenu(new QToolButton(this))
{
    setFocusProxy(m_view);
    m_view->nameCommands(QStringLiteral("diff"));
    makeCommands();
    layOut();
    m_busyTimer->setSingleShot(true);
    m_busyTimer->setInterval(busyAfterMs);
    connect(m_busyTimer, &QTimer::timeout, m_busy, &QWidget::show);
    connect(m_tabs, &QTabBar::currentChanged, this, &DiffPanel::refresh);
    connect(m_view, &DiffView::currentRowChanged, this, &DiffPanel::showHunkCount);
    connect(m_view, &DiffView::lineChosen, this, [this](Side side, int line) {
        if (m_shownTab != DiffTab::Source)
            return;
        emit lineChosen(static_cast<int>(side), line + 1);
        sayHeat(side);
        sayComments(side);
    });
    connect(m_find, &FindBar::openWanted, this, &DiffPanel::openFind);
    connect(m_find, &FindBar::textChanged, this, &DiffPanel::search);
    connect(m_find, &FindBar::nextWanted, this, &DiffPanel::nextMatch);
    connect(m_find, &FindBar::previousWanted, this, &DiffPanel::previousMatch);
    connect(m_find, &FindBar::closed, this, [this] {
        m_view->setMatches({}, -1);
        m_view->setFocus();
    });
    connect(&m_loader, &DiffLoader::loaded, this, [this](const QString &key, const DocumentPtr &document) {
        if (key == m_wantedKey)
            showDocument(document);
    });
    connect(selection, &Selection::lineageChanged, this, &DiffPanel::refresh);
    connect(selection, &Selection::rowChanged, this, &DiffPanel::refresh);
    connect(selection, &Selection::baselineChanged, this, &DiffPanel::refresh);
    connect(workspace, &WorkspaceModel::loaded, this, &DiffPanel::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, [this](const QString &key) {
        if (key == m_selection->lineageKey())
            refresh();
    });
    refresh();
}

DiffPanel::~DiffPanel() = default;

DiffTab DiffPanel::tab() const
{
    return static_cast<DiffTab>(m_tabs->currentIndex());
}

void DiffPanel::setTab(DiffTab tab)
{
    m_tabs->setCurrentIndex(static_cast<int>(tab));
}

void DiffPanel::refresh()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const QString row = m_selection->row();
    const auto spec =
        lineage ? diffSpec(*lineage, row, m_selection->baseline(), tab(), m_options) : std::nullopt;
    showHeadings();
    if (!spec) {
        m_loader.cancel();
        m_wantedKey.clear();
        if (!m_workspace->isLoaded())
            showDocument(messageDocument(tr("Reading the workspace…")));
        else if (lineage && !row.isEmpty())
            showDocument(messageDocument(
                tr("%1 has no row %2. Choose one in the lineage.").arg(m_selection->lineageKey(), row)));
        else
            showDocument(messageDocument(
                tr("Choose a lineage in the library to see how one state differs from the next.")));
        return;
    }
    const QString key = spec->key();
    if (key != m_wantedKey) {
        m_lineWanted.reset();
        m_commentWanted.clear();
        m_commentBar->stopAsking();
    }
    m_wantedKey = key;
    refreshHeat(nullptr);
    if (const DocumentPtr document = m_loader.load(*spec))
        showDocument(document);
    else
        m_busyTimer->start();
}

void DiffPanel::showDocument(const DocumentPtr &document)
{
    m_busyTimer->stop();
    m_busy->hide();
    const bool sameText =
        m_shownLineage == m_selection->lineageKey() && m_shownTab == tab() && !m_shownKey.isEmpty();
    m_shownKey = m_wantedKey;
    m_shownTab = tab();
    m_shownLineage = m_selection->lineageKey();
    if (document != m_view->document())
        m_view->setDocument(document, sameText);
    refreshHeat(document);
    refreshComments(*document);
    m_left->setVisible(!document->isSingle());
    if (m_arrival == Arrival::FirstHunk)
        m_view->goToHunk(0);
    else if (m_arrival == Arrival::LastHunk)
        m_view->goToHunk(m_view->hunkCount() - 1);
    else if (m_arrival == Arrival::MostMoved)
        goByMoved(1);
    m_arrival = Arrival::Keep;
    showWantedLine();
    showHunkCount();
    if (m_find->isVisible())
        search();
    prefetchNeighbours();
}

void DiffPanel::showSourceLine(int side, int line)
{
    setTab(DiffTab::Source);
    m_lineWanted = SideLine{side == 0 ? Side::Left : Side::Right, line - 1};
    if (isUpToDate())
        showWantedLine();
}

void DiffPanel::showWantedLine()
{
    const auto wanted = std::exchange(m_lineWanted, std::nullopt);
    if (!wanted || m_view->showLine(wanted->side, wanted->line))
        return;
    const int line = wanted->line + 1;
    emit message(wanted->side == Side::Left ? tr("The source at the left has no line %1.").arg(line)
                                            : tr("The source has no line %1.").arg(line));
}

void DiffPanel::showHeadings()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const QString baseline = m_selection->baseline();
    const auto step =
        lineage ? lineage::findStep(*lineage, m_selection->row().toStdString(), baseline.toStdString())
                : std::nullopt;
    if (!step) {
        m_right->setHeading({});
        m_left->setHeading({});
        return;
    }
    m_right->setHeading(sideHeading(step->right, step->left ? &*step->left : nullptr));
    SideHeading left;
    if (step->left) {
        left = leftHeading(*step->left, step->right);
        left.pinned = baseline.toStdString() == step->left->id;
    }
    m_left->setHeading(left);
    setAccessibleName(step->left ? tr("Differences from %1 to %2").arg(left.label, m_right->heading().label)
                                 : tr("Source of %1").arg(m_right->heading().label));
    m_view->setAccessibleName(accessibleName());
}

void DiffPanel::showHunkCount()
{
    const int count = m_view->hunkCount();
    const int current = m_view->currentHunk();
    QString text;
    const DocumentPtr &document = m_view->document();
    const bool compared = document && !document->isSingle() && document->left->message.isEmpty()
                          && document->right->message.isEmpty();
    if (count > 0)
        text = current >= 0 ? tr("Change %1 of %2").arg(current + 1).arg(count)
               : count == 1 ? tr("1 change")
                            : tr("%1 changes").arg(count);
    else if (compared)
        text = m_options.ignoreWhitespace ? tr("Equal but for whitespace") : tr("No difference");
    m_hunks->setText(text);
}

void DiffPanel::prefetchNeighbours()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    if (!lineage)
        return;
    std::vector<DiffSpec> wishes;
    QString before = m_selection->row();
    QString after = before;
    for (int distance = 0; distance < 3; ++distance) {
        after = nextState(*lineage, after);
        before = previousState(*lineage, before);
        for (const QString &row : {after, before}) {
            if (row.isEmpty())
                continue;
            if (auto spec = diffSpec(*lineage, row, m_selection->baseline(), tab(), m_options))
                wishes.push_back(std::move(*spec));
        }
    }
    m_loader.prefetch(wishes);
}

bool DiffPanel::isAtHand(const QString &row) const
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const auto spec =
        lineage ? diffSpec(*lineage, row, m_selection->baseline(), tab(), m_options) : std::nullopt;
    return spec && m_loader.has(*spec);
}

void DiffPanel::goToNextHunk()
{
    if (m_view->goToNextHunk())
        return;
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const QString next = lineage ? nextState(*lineage, m_selection->row()) : QString();
    if (next.isEmpty()) {
        emit message(tr("This is the last change of the lineage."));
        return;
    }
    m_arrival = Arrival::FirstHunk;
    m_selection->setRow(next);
}

void DiffPanel::goToPreviousHunk()
{
    if (m_view->goToPreviousHunk())
        return;
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const QString previous = lineage ? previousState(*lineage, m_selection->row()) : QString();
    if (previous.isEmpty()) {
        emit message(tr("This is the first change of the lineage."));
        return;
    }
    m_arrival = Arrival::LastHunk;
    m_selection->setRow(previous);
}

void DiffPanel::openFind()
{
    const QString selected = m_view->selectedText();
    m_find->open(selected.contains(u'\n') ? QString() : selected);
}

void DiffPanel::askForLine()
{
    const DocumentPtr &document = m_view->document();
    const auto chosen = m_view->chosenLines();
    const Side side = chosen ? chosen->side : Side::Right;
    if (!document || !document->has(side) || document->side(side).text.count() == 0)
        return;
    const int last = document->side(side).text.count();
    const QString question = side == Side::Left ? tr("&Line of the left side (1 to %1)").arg(last)
                                                : tr("&Line of the right side (1 to %1)").arg(last);
    bool isWanted = false;
    const int line = QInputDialog::getInt(this, tr("Go to line"), question, chosen ? chosen->first + 1 : 1, 1,
                                          last, 1, &isWanted);
    if (isWanted)
        m_view->goToLine(side, line - 1);
}

void DiffPanel::search()
{
    const QString text = m_find->text();
    const DocumentPtr document = m_view->document();
    if (text.isEmpty() || !document) {
        m_searching.cancel();
        m_view->setMatches({}, -1);
        m_find->setCount(-1, 0, false);
        return;
    }
    m_searching.start(
        interactivePool(), [this, text, document](const std::stop_token &stop, const JobSlot::Post &post) {
            FindResult result = findInDocument(*document, text, stop);
            post([this, document, result = std::move(result)] {
                if (document != m_view->document())
                    return;
                const int current = result.matches.empty() ? -1 : 0;
                m_find->setCount(current, static_cast<int>(result.matches.size()), result.truncated);
                m_view->setMatches(result, current);
                if (m_find->isVisible() && current >= 0)
                    m_view->goToMatch(0);
            });
        });
}

void DiffPanel::goToMatch(int step)
{
    const FindResult &found = m_view->matches();
    const int count = static_cast<int>(found.matches.size());
    if (count == 0) {
        if (!m_find->isVisible())
            m_find->open({}); // what was searched for last
        return;
    }
    const int next = (m_view->currentMatch() + step + count) % count;
    m_view->goToMatch(next);
    m_find->setCount(next, count, found.truncated);
}

bool DiffPanel::event(QEvent *event)
{
    if (event->type() == QEvent::ShowToParent && isUpToDate())
        showHunkCount();
    return QWidget::event(event);
}

} // namespace klineage::ui
