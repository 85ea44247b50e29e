// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph/lineagepanel.h"

#include "core/workspace/workspace.h"
#include "ui/graph/lineageview.h"
#include "ui/models/lineagemodel.h"
#include "ui/models/selection.h"
#include "ui/models/workspacemodel.h"
#include "ui/style/icons.h"
#include "ui/style/keyscope.h"
#include "ui/style/segmentedswitch.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QDesktopServices>
#include <QFileInfo>
#include <QHBoxLayout>
#include <QLabel>
#include <QMenu>
#include <QScopedValueRollback>
#include <QStackedWidget>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

namespace klineage::ui {

LineagePanel::LineagePanel(WorkspaceModel *workspace, Selection *selection, QWidget *parent)
    : QWidget(parent)
    , m_workspace(workspace)
    , m_selection(selection)
    , m_model(new LineageModel(this))
    , m_view(new LineageView(m_model))
    , m_stack(new QStackedWidget)
    , m_empty(new QLabel)
    , m_directionSwitch(new SegmentedSwitch({tr("backward"), tr("forward")}, SegmentedSwitch::Size::Small))
    , m_baselineChip(new QToolButton)
    , m_menu(new QMenu(this))
{
    m_view->setAccessibleName(tr("Lineage"));
    m_view->setContextMenuPolicy(Qt::CustomContextMenu);
    m_empty->setWordWrap(true);
    m_empty->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_empty->setMargin(12);
    m_empty->setForegroundRole(QPalette::PlaceholderText);
    m_stack->addWidget(m_view);
    m_stack->addWidget(m_empty);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    buildCorner();
    layout->addWidget(m_stack, 1);
    setFocusProxy(m_view);
    buildActions();

    connect(m_view->selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &current) {
                if (!m_following && current.isValid())
                    m_selection->setRow(current.data(LineageModel::IdRole).toString());
            });
    connect(m_view, &LineageView::rowHovered, this,
            [this](int row) { m_selection->setHovered(row < 0 ? QString() : m_model->row(row).id); });
    connect(m_view, &QAbstractItemView::doubleClicked, this, &LineagePanel::openInEditor);
    connect(m_view, &QWidget::customContextMenuRequested, this,
            [this](const QPoint &at) { m_menu->popup(m_view->viewport()->mapToGlobal(at)); });

    connect(workspace, &WorkspaceModel::loaded, this, &LineagePanel::refresh);
    connect(workspace, &WorkspaceModel::lineageChanged, this, [this](const QString &key) {
        if (key == m_selection->lineageKey())
            refresh();
    });
    connect(selection, &Selection::lineageChanged, this, &LineagePanel::refresh);
    connect(selection, &Selection::rowChanged, this, &LineagePanel::showRow);
    connect(selection, &Selection::baselineChanged, this, &LineagePanel::showBaseline);
    connect(selection, &Selection::hoveredChanged, this,
            [this](const QString &row) { m_view->setLitRow(m_model->rowOf(row)); });
    showBaseline();
}

void LineagePanel::buildCorner()
{
    auto *corner = new QWidget;
    corner->setObjectName(QStringLiteral("titleBarCorner"));
    auto *row = new QHBoxLayout(corner);
    row->setContentsMargins(0, 0, 4, 0);
    row->setSpacing(6);
    m_baselineChip->setIcon(icon(QStringLiteral("pin")));
    m_baselineChip->setIconSize(QSize(12, 12));
    m_baselineChip->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    m_baselineChip->setFocusPolicy(Qt::TabFocus);
    m_directionSwitch->setAccessibleName(tr("Direction of the lineage"));
    m_directionSwitch->setToolTips(
        {tr("K* first: one simplification a step"), tr("K0 first: one optimization a step")});
    row->addStretch(1);
    row->addWidget(m_baselineChip);
    row->addWidget(m_directionSwitch);
    layout()->addWidget(corner);
    connect(m_baselineChip, &QToolButton::clicked, this, [this] { m_selection->setBaseline({}); });
    connect(m_directionSwitch, &SegmentedSwitch::currentChanged, this,
            [this](int index) { setDirection(index == 0 ? Direction::Backward : Direction::Forward); });
}

QAction *LineagePanel::addPanelAction(const QString &name, const QString &text, const QKeySequence &key,
                                      bool windowWide, void (LineagePanel::*slot)())
{
    auto *action = new QAction(text, this);
    action->setObjectName(name);
    action->setShortcut(key);
    // Single letters act only when the list has the focus.
    action->setShortcutContext(windowWide ? Qt::WindowShortcut : Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, slot);
    if (windowWide)
        addAction(action);
    else
        m_view->addAction(action);
    return action;
}

void LineagePanel::buildActions()
{
    addPanelAction(QStringLiteral("lineage.nextStep"), tr("Next step"),
                   QKeySequence(Qt::CTRL | Qt::Key_Right), true, &LineagePanel::nextStep);
    addPanelAction(QStringLiteral("lineage.previousStep"), tr("Previous step"),
                   QKeySequence(Qt::CTRL | Qt::Key_Left), true, &LineagePanel::previousStep);
    m_menu->addAction(addPanelAction(QStringLiteral("lineage.openInEditor"), tr("Open in editor"),
                                     QKeySequence(Qt::Key_Return), false, &LineagePanel::openInEditor));
    QAction *baseline = addPanelAction(QStringLiteral("lineage.setBaseline"), tr("Set as baseline"),
                                       QKeySequence(Qt::Key_B), false, &LineagePanel::toggleBaseline);
    actInAllPanes(baseline);
    m_menu->addAction(baseline);
    m_menu->addSeparator();
    m_menu->addAction(addPanelAction(QStringLiteral("lineage.copyId"), tr("Copy id"), QKeySequence::Copy,
                                     false, &LineagePanel::copyId));
    m_menu->addAction(addPanelAction(QStringLiteral("lineage.revealFile"), tr("Reveal file"), {}, false,
                                     &LineagePanel::revealFile));
}

void LineagePanel::refresh()
{
    // All the way: a view that is shown and gets the focus makes its first row the current one.
    const QScopedValueRollback<bool> following(m_following, true);
    const lineage::Lineage *lineage = m_workspace->lineage(m_selection->lineageKey());
    m_model->refresh(lineage, m_selection->baseline(), m_direction);
    setWindowTitle(lineage ? QStringLiteral("%1 · %2").arg(QString::fromStdString(lineage->workload),
                                                           lineageLabel(*lineage))
                           : QString());
    if (lineage && m_model->rowCount() > 0) {
        m_stack->setCurrentWidget(m_view);
    } else {
        m_empty->setText(
            !m_workspace->isLoaded() ? QString()
            : lineage ? tr("This lineage has no states yet. Its lineage.toml lists them under [[state]].")
                      : tr("Choose a lineage in the library: Ctrl+P goes to it by name."));
        m_stack->setCurrentWidget(m_empty);
    }
    showRow();
    showBaseline();
}

void LineagePanel::showRow()
{
    const int row = m_model->rowOf(m_selection->row());
    const QScopedValueRollback<bool> following(m_following, true);
    if (row < 0) {
        m_view->clearSelection();
        return;
    }
    if (m_view->currentIndex().row() != row || !m_view->selectionModel()->isRowSelected(row))
        m_view->selectRow(row);
    m_view->scrollTo(m_model->index(row, 0), QAbstractItemView::EnsureVisible);
}

void LineagePanel::showBaseline()
{
    const QString pinned = m_selection->baseline();
    {
        const QScopedValueRollback<bool> following(m_following, true);
        m_model->refresh(m_workspace->lineage(m_selection->lineageKey()), pinned, m_direction);
    }
    m_view->setBaselinePinned(!pinned.isEmpty());
    m_baselineChip->setVisible(!pinned.isEmpty());
    m_baselineChip->setText(pinned);
    m_baselineChip->setToolTip(
        tr("All deltas are against %1. Click to compare with parents and K0 again.").arg(pinned));
    m_baselineChip->setAccessibleName(tr("Baseline %1, click to unpin").arg(pinned));
}

void LineagePanel::setDirection(Direction direction)
{
    if (direction == m_direction)
        return;
    m_direction = direction;
    m_directionSwitch->setCurrentIndex(direction == Direction::Backward ? 0 : 1);
    refresh();
    emit directionChanged(direction);
}

void LineagePanel::step(int by)
{
    const QString next =
        m_selection->row().isEmpty() ? QString() : m_model->neighbourState(m_selection->row(), by);
    if (!next.isEmpty())
        m_selection->setRow(next);
}

const LineageRow *LineagePanel::currentRow() const
{
    const int row = m_model->rowOf(m_selection->row());
    return row < 0 ? nullptr : &m_model->row(row);
}

void LineagePanel::toggleBaseline()
{
    const LineageRow *row = currentRow();
    if (!row)
        return;
    // Only a state can be a baseline; for what was tried from a state, that state is meant.
    const QString state = row->kind == lineage::TableRow::Kind::State ? row->id : row->parent;
    m_selection->setBaseline(state == m_selection->baseline() ? QString() : state);
}

void LineagePanel::openInEditor()
{
    if (const LineageRow *row = currentRow())
        emit openInEditorRequested(m_selection->lineageKey(), row->id);
}

void LineagePanel::copyId()
{
    if (const LineageRow *row = currentRow())
        QApplication::clipboard()->setText(m_selection->lineageKey() + QLatin1Char('/') + row->id);
}

void LineagePanel::revealFile()
{
    if (const LineageRow *row = currentRow(); row && !row->file.isEmpty())
        QDesktopServices::openUrl(QUrl::fromLocalFile(QFileInfo(row->file).absolutePath()));
}

} // namespace klineage::ui
