// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/table/plottableview.h"

#include "ui/style/columnscale.h"
#include "ui/style/plainwidgets.h"

#include <QHeaderView>
#include <QScopedValueRollback>

namespace klineage::ui {

PlotTableView::PlotTableView(QWidget *parent)
    : QTableView(parent)
    , m_model(new PlotTableModel(this))
{
    setModel(m_model);
    setSelectionBehavior(QAbstractItemView::SelectRows);
    setSelectionMode(QAbstractItemView::SingleSelection);
    setEditTriggers(QAbstractItemView::NoEditTriggers);
    setShowGrid(false);
    setFrameShape(QFrame::NoFrame);
    setTabKeyNavigation(false);
    verticalHeader()->hide();
    verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 8);
    makePlainHeader(horizontalHeader());
    new ColumnScale(this);
    connect(selectionModel(), &QItemSelectionModel::currentRowChanged, this,
            [this](const QModelIndex &current) {
                const QString id = current.data(PlotTableModel::IdRole).toString();
                if (m_isMarking || id.isEmpty())
                    return;
                m_selected = id;
                emit rowChosen(id);
            });
}

void PlotTableView::setMaker(std::function<PlotTable()> maker)
{
    m_maker = std::move(maker);
    outdate();
}

void PlotTableView::outdate()
{
    m_isOutdated = true;
    if (isVisible())
        fill();
}

void PlotTableView::fill()
{
    if (!m_isOutdated || !m_maker)
        return;
    m_isOutdated = false;
    {
        const QScopedValueRollback<bool> marking(m_isMarking, true);
        m_model->setTable(m_maker());
    }
    resizeColumnsToContents();
    mark();
}

void PlotTableView::select(const QString &id)
{
    if (id == m_selected)
        return;
    m_selected = id;
    if (isVisible())
        mark();
}

void PlotTableView::mark()
{
    const QScopedValueRollback<bool> marking(m_isMarking, true);
    const int row = m_model->rowOf(m_selected);
    if (row < 0) {
        clearSelection();
        return;
    }
    const QModelIndex index = m_model->index(row, 0);
    selectionModel()->setCurrentIndex(index, QItemSelectionModel::ClearAndSelect | QItemSelectionModel::Rows);
    scrollTo(index, QAbstractItemView::EnsureVisible);
}

void PlotTableView::showEvent(QShowEvent *event)
{
    QTableView::showEvent(event);
    fill();
    mark();
}

} // namespace klineage::ui
