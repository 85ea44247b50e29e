// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/storypanel.h"

#include "core/workspace/workspace.h"
#include "ui/diff/view/diffview.h"
#include "ui/models/lineagerow.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/runs/runstore.h"
#include "ui/story/chain/chainpicture.h"
#include "ui/story/graph/lanes.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/story/picture/picturemodel.h"
#include "ui/story/published/publishedpictures.h"
#include "ui/story/roundtrip/roundtrippicture.h"
#include "ui/story/roundtrip/roundtripreader.h"
#include "ui/story/windows/comparewindow.h"
#include "ui/story/windows/presenter.h"
#include "ui/style/plainwidgets.h"
#include "ui/style/segmentedswitch.h"
#include "ui/style/tickmenu.h"

#include <QAction>
#include <QComboBox>
#include <QHeaderView>
#include <QScopedValueRollback>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>

namespace klineage::ui {

namespace {

constexpr std::size_t mostOverlaid = 6;
const QLatin1String runPrefix("run:");
const QLatin1String roundtripPrefix(roundtripKey);

} // namespace

StoryPanel::StoryPanel(WorkspaceModel *workspace, Selection *selection, RunStore *runs, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_runs(runs)
    , m_canvas(new PictureCanvas(QStringLiteral("story")))
    , m_model(new PictureModel(this))
    , m_table(makePlainTable(m_model, tr("The story as a table")))
    , m_roundtrips(new RoundtripReader(this))
    , m_stack(new QStackedWidget)
    , m_views(new QComboBox)
    , m_source(new SegmentedSwitch({tr("Lineage"), tr("Run")}, SegmentedSwitch::Size::Small))
    , m_scale(new SegmentedSwitch({tr("over K0"), tr("over reference")}, SegmentedSwitch::Size::Small))
    , m_lineages(new QToolButton)
    , m_lineageMenu(new TickMenu(this))
    , m_tableButton(new QToolButton)
{
    m_table->setObjectName(QStringLiteral("behindCanvas"));
    m_stack->addWidget(m_canvas);
    m_stack->addWidget(m_table);
    buildBar();
    buildCommands();
    buildSideCommands();
    setFocusProxy(m_canvas);

    connect(m_canvas, &PictureCanvas::itemChosen, this, &StoryPanel::follow);
    connect(m_canvas, &PictureCanvas::itemOpened, this, [this](const QString &key, const QString &row) {
        follow(key, row);
        if (!key.isEmpty() && !key.startsWith(runPrefix))
            emit rowOpened();
    });
    connect(m_canvas, &PictureCanvas::itemHovered, this, [this](const QString &key, const QString &row) {
        m_selection->setHovered(key == m_selection->lineageKey() ? row : QString());
    });
    connect(m_table->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &current) {
                const int item = current.isValid() ? current.data(PictureModel::ItemRole).toInt() : -1;
                if (m_following || item < 0)
                    return;
                const PictureItem &chosen = m_canvas->picture().items[static_cast<std::size_t>(item)];
                follow(QString(chosen.key), QString(chosen.row));
            });
    connect(workspace, &WorkspaceModel::loaded, this, &StoryPanel::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, &StoryPanel::refresh);
    connect(selection, &Selection::lineageChanged, this, [this] {
        m_source->setCurrentIndex(0);
        refresh();
    });
    connect(selection, &Selection::rowChanged, this, [this] {
        m_canvas->hover({}, {}); // of any lineage
        showSelection();
    });
    connect(selection, &Selection::hoveredChanged, this,
            [this](const QString &row) { m_canvas->hover(m_selection->lineageKey(), row); });
    connect(m_roundtrips, &RoundtripReader::changed, this, &StoryPanel::refresh);
    connect(runs, &RunStore::changed, this, &StoryPanel::followRun);
    connect(runs, &RunStore::currentChanged, this, &StoryPanel::followRun);
    connect(runs, &RunStore::stepChanged, this, &StoryPanel::showSelection);
}

StoryPanel::~StoryPanel() = default;

/// A run that somebody chose, or that goes on, is looked at; the one that the store begins with is not.
void StoryPanel::followRun()
{
    const QString id = m_runs->currentId();
    const RunEntryPtr run = m_runs->current();
    const bool isChosen = id != m_run && !m_run.isEmpty();
    const bool isGoingOn = run && run->isRunning() && m_goingOn != id;
    if (isGoingOn)
        m_goingOn = id;
    m_run = id;
    if (id.isEmpty())
        m_source->setCurrentIndex(0);
    else if (isChosen || isGoingOn)
        m_source->setCurrentIndex(1);
    refresh();
}

/// A picture that nobody sees is not made.
void StoryPanel::refresh()
{
    m_isStale = true;
    if (isVisible())
        rebuild();
}

void StoryPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    if (m_isStale)
        rebuild();
}

QStringList StoryPanel::overlayKeys() const
{
    if (m_overlay)
        return *m_overlay;
    QStringList keys;
    if (const lineage::Lineage *one = m_workspace->lineage(m_selection->lineageKey())) {
        for (const lineage::Lineage *each :
             overlayBeside(m_workspace->workspace().lineages, *one, mostOverlaid))
            keys << QString::fromStdString(each->key());
    }
    return keys;
}

Picture StoryPanel::makePicture() const
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    const RunEntryPtr run = m_runs->current();
    Picture picture;
    const auto say = [&picture](const QString &text) {
        picture.name = tr("Story");
        picture.message = text;
        return picture;
    };
    const bool isOfRun = showsRun() && run;
    switch (view()) {
    case View::Waterfall:
        if (isOfRun)
            return waterfall(chainOf(*run));
        return lineage ? waterfall(chainOf(*lineage))
                       : say(tr("Choose a lineage in the library: Ctrl+P goes to it by name."));
    case View::Graph:
        if (isOfRun)
            return lanePicture(laneGraphOf(*run));
        return lineage ? lanePicture(laneGraphOf(*lineage))
                       : say(tr("Choose a lineage in the library: Ctrl+P goes to it by name."));
    case View::Overlay: {
        std::vector<const lineage::Lineage *> chosen;
        for (const QString &key : overlayKeys()) {
            if (const lineage::Lineage *each = m_workspace->lineage(key))
                chosen.push_back(each);
        }
        return overlay(chosen, m_scale->currentIndex() == 0 ? OverlayScale::First : OverlayScale::Reference);
    }
    case View::Speedups:
        return speedupBars(m_workspace->workspace(), paper());
    case View::Trace: {
        if (!lineage)
            return say(tr("Choose a lineage in the library: Ctrl+P goes to it by name."));
        picture = deoptimizationTrace(chainOf(*lineage));
        if (lineage->workload == "gdn")
            addPublishedDrops(picture, paper());
        return picture;
    }
    case View::Steps:
        return run ? runSteps(*run, paper()) : say(tr("Choose a run in the panel Runs to see its steps."));
    case View::Roundtrip:
        if (!lineage)
            return say(tr("Choose a lineage in the library: Ctrl+P goes to it by name."));
        if (!m_roundtrips->problem().isEmpty())
            return say(m_roundtrips->problem());
        return m_roundtrips->record() ? roundtripPicture(*lineage, *m_roundtrips->record())
                                      : say(tr("Reading what is recorded of roundtrips…"));
    }
    return picture;
}

/// What the picture is and of what, as a file is called: "overlay-gemm/sm90-softmax/pocl-and-4-more".
QString StoryPanel::exportName() const
{
    constexpr qsizetype mostNamed = 3;
    const QString kind = viewNames().at(m_views->currentIndex());
    if (view() == View::Speedups)
        return kind;
    const bool isEither = view() == View::Waterfall || view() == View::Graph;
    if (view() == View::Steps || (isEither && showsRun() && m_runs->current()))
        return QStringLiteral("%1-%2").arg(kind, m_runs->currentId());
    if (view() != View::Overlay)
        return QStringLiteral("%1-%2").arg(kind, m_selection->lineageKey());
    const QStringList keys = overlayKeys();
    const QString named = QStringLiteral("%1-%2").arg(kind, keys.mid(0, mostNamed).join(QLatin1Char('-')));
    return keys.size() > mostNamed ? QStringLiteral("%1-and-%2-more").arg(named).arg(keys.size() - mostNamed)
                                   : named;
}

void StoryPanel::rebuild()
{
    m_isStale = false;
    const bool isEither = view() == View::Waterfall || view() == View::Graph;
    m_source->setVisible(isEither && m_runs->current() != nullptr);
    m_scale->setVisible(view() == View::Overlay);
    m_lineages->setVisible(view() == View::Overlay);
    readRoundtrips();
    Picture picture = makePicture();
    const QString subject =
        showsRun() || view() == View::Steps ? m_runs->currentId() : m_selection->lineageKey();
    const QString key = QStringLiteral("%1|%2|%3")
                            .arg(m_views->currentIndex())
                            .arg(picture.message.isEmpty() ? 1 : 0)
                            .arg(view() == View::Overlay ? overlayKeys().join(QLatin1Char(',')) : subject);
    const bool isSame = key == m_shownKey;
    m_shownKey = key;
    setProperty("exportName", exportName());
    {
        const QScopedValueRollback<bool> following(m_following, true);
        m_model->setTable(picture.table);
    }
    m_table->setAccessibleName(picture.name);
    setWindowTitle(picture.message.isEmpty() ? picture.name : QString());
    m_canvas->setPicture(std::move(picture), isSame);
    if (!isSame)
        m_table->resizeColumnsToContents();
    showSelection();
}

void StoryPanel::showSelection()
{
    if (m_isStale)
        return;
    const QString runKey = runPrefix + m_runs->currentId();
    const bool isOfRun = m_canvas->picture().itemOf(runKey, QString::number(m_runs->step())) >= 0;
    if (isOfRun)
        m_canvas->select(runKey, QString::number(m_runs->step()));
    else if (view() != View::Roundtrip) // whose trials are no rows of the window
        m_canvas->select(m_selection->lineageKey(), m_selection->row());
    const QScopedValueRollback<bool> following(m_following, true);
    const int row = m_model->rowOf(m_canvas->selected());
    if (row < 0)
        m_table->clearSelection();
    else if (m_table->currentIndex().row() != row)
        m_table->selectRow(row);
}

void StoryPanel::follow(const QString &key, const QString &row)
{
    if (key.startsWith(runPrefix))
        m_runs->setCurrent(key.mid(runPrefix.size()), row.toInt());
    else if (key.startsWith(roundtripPrefix))
        followTrial(key, row);
    else if (!key.isEmpty())
        m_selection->setLineage(key, row);
}

/// A trial of a roundtrip is no row of the window: what it was timed beside is.
void StoryPanel::followTrial(const QString &key, const QString &row)
{
    const QString lineageKey = key.mid(roundtripPrefix.size());
    m_canvas->select(key, row);
    if (const lineage::Lineage *lineage = m_workspace->lineage(lineageKey);
        lineage && !lineage->states.empty())
        m_selection->setLineage(lineageKey, QString::fromStdString(lineage->states.back().id));
    showSelection();
}

/// The picture follows when something is there that was not shown.
void StoryPanel::readRoundtrips()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    if (view() == View::Roundtrip && lineage)
        m_roundtrips->look(lineage->directory);
}

bool StoryPanel::isUpToDate() const
{
    return !isVisible() || view() != View::Roundtrip || !m_roundtrips->isReading();
}

StoryPanel::View StoryPanel::view() const
{
    return static_cast<View>(m_views->currentIndex());
}

QStringList StoryPanel::viewNames()
{
    return {QStringLiteral("waterfall"), QStringLiteral("graph"), QStringLiteral("overlay"),
            QStringLiteral("speedups"),  QStringLiteral("trace"), QStringLiteral("steps"),
            QStringLiteral("roundtrip")};
}

void StoryPanel::setView(View view)
{
    m_views->setCurrentIndex(static_cast<int>(view));
}

bool StoryPanel::showsRun() const
{
    return m_source->currentIndex() == 1;
}

void StoryPanel::showRun(bool run)
{
    m_source->setCurrentIndex(run ? 1 : 0);
}

bool StoryPanel::showsTable() const
{
    return m_stack->currentWidget() == m_table;
}

void StoryPanel::showTable(bool table)
{
    const bool hadFocus = m_stack->currentWidget()->hasFocus();
    m_stack->setCurrentIndex(table ? 1 : 0);
    m_tableButton->setChecked(table);
    setFocusProxy(m_stack->currentWidget());
    if (hadFocus)
        m_stack->currentWidget()->setFocus();
}

void StoryPanel::setOverlayScale(OverlayScale scale)
{
    m_scale->setCurrentIndex(scale == OverlayScale::First ? 0 : 1);
}

/// Which lineages are laid over each other.
void StoryPanel::fillLineages()
{
    m_lineageMenu->clear();
    const QStringList shown = overlayKeys();
    for (const lineage::Lineage &lineage : m_workspace->workspace().lineages) {
        const QString key = QString::fromStdString(lineage.key());
        if (lineage.states.size() < 2)
            continue;
        QAction *action = m_lineageMenu->addAction(key);
        action->setCheckable(true);
        action->setChecked(shown.contains(key));
        connect(action, &QAction::toggled, this, [this, key](bool checked) {
            QStringList keys = overlayKeys();
            keys.removeAll(key);
            if (checked)
                keys << key;
            m_overlay = keys;
            refresh();
        });
    }
    m_lineageMenu->addSeparator();
    connect(m_lineageMenu->addAction(tr("Those that fit the selected one")), &QAction::triggered, this,
            [this] {
                m_overlay.reset();
                refresh();
            });
}

void StoryPanel::present()
{
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    if (!lineage || lineage->states.empty()) {
        emit message(tr("Choose a lineage to present: its states become the pages."));
        return;
    }
    if (!m_presenter) {
        m_presenter = std::make_unique<Presenter>(m_workspace, m_selection);
        m_presenter->addActions(m_presenterCommands);
    }
    m_presenter->begin();
}

void StoryPanel::compare(const QString &leftKey, const QString &leftRow, const QString &rightKey,
                         const QString &rightRow)
{
    const lineage::Lineage *left = m_workspace->lineage(leftKey);
    // Two of one lineage are compared by the whole window.
    if (left && leftKey == rightKey && leftRow != rightRow && left->findState(leftRow.toStdString())) {
        m_selection->setLineage(rightKey, rightRow);
        m_selection->setBaseline(leftRow);
        emit rowOpened();
        return;
    }
    if (!m_comparison) {
        m_comparison = std::make_unique<CompareWindow>(m_workspace);
        m_comparison->addActions(m_comparisonCommands);
        m_comparison->view()->takeCommands(m_copyCode, m_selectCode);
    }
    const QString problem = m_comparison->compare({leftKey, leftRow}, {rightKey, rightRow});
    if (!problem.isEmpty())
        emit message(problem);
}

} // namespace klineage::ui
