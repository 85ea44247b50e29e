// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/problemspanel.h"

#include "ui/shell/problemsmodel.h"
#include "ui/style/columnscale.h"
#include "ui/style/plainwidgets.h"

#include <QHeaderView>
#include <QLabel>
#include <QStackedWidget>
#include <QTableView>
#include <QVBoxLayout>

namespace klineage::ui {

ProblemsPanel::ProblemsPanel(ProblemsModel *problems, QWidget *parent)
    : QWidget(parent)
    , m_problems(problems)
    , m_stack(new QStackedWidget)
    , m_table(new QTableView)
    , m_none(new QLabel(
          tr("No problems: every file of the workspace could be read, and none had to be recovered.")))
{
    m_table->setModel(problems);
    m_table->setAccessibleName(tr("Problems"));
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setShowGrid(false);
    m_table->setWordWrap(false);
    m_table->setTabKeyNavigation(false);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 7);
    makePlainHeader(m_table->horizontalHeader());
    m_table->horizontalHeader()->setSectionResizeMode(ProblemsModel::MessageColumn, QHeaderView::Stretch);
    m_table->setColumnWidth(ProblemsModel::WhereColumn, 190);
    new ColumnScale(m_table);
    m_none->setWordWrap(true);
    m_none->setAlignment(Qt::AlignTop | Qt::AlignLeft);
    m_none->setMargin(12);
    m_none->setForegroundRole(QPalette::PlaceholderText);
    m_stack->addWidget(m_table);
    m_stack->addWidget(m_none);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_stack);
    setFocusProxy(m_table);
    connect(problems, &QAbstractItemModel::modelReset, this, &ProblemsPanel::refresh);
    connect(problems, &QAbstractItemModel::rowsInserted, this, &ProblemsPanel::refresh);
    refresh();
}

void ProblemsPanel::refresh()
{
    const int rows = m_problems->rowCount();
    setWindowTitle(rows > 0 ? QString::number(rows) : QString());
    m_stack->setCurrentWidget(rows > 0 ? static_cast<QWidget *>(m_table) : m_none);
}

} // namespace klineage::ui
