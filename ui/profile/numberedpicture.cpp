// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/numberedpicture.h"

#include "ui/profile/numbersmodel.h"

#include <QHBoxLayout>
#include <QHeaderView>
#include <QScrollBar>
#include <QTableView>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr int leastPicture = 300; // pixels: below that the numbers go

} // namespace

NumberedPicture::NumberedPicture(QWidget *picture, QWidget *parent)
    : QWidget(parent)
    , m_numbers(new NumbersModel(this))
    , m_table(new QTableView)
{
    m_table->setModel(m_numbers);
    m_table->setProperty("notExported", true); // pictures are the picture
    m_table->setAccessibleName(tr("The numbers of the picture beside it"));
    m_table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    m_table->setSelectionBehavior(QAbstractItemView::SelectRows);
    m_table->setShowGrid(false);
    m_table->setFrameShape(QFrame::NoFrame);
    m_table->verticalHeader()->hide();
    m_table->verticalHeader()->setDefaultSectionSize(fontMetrics().height() + 6);
    m_table->horizontalHeader()->setHighlightSections(false);
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(0, 0, 0, 0);
    row->setSpacing(0);
    row->addWidget(picture, 1);
    row->addWidget(m_table);
    setFocusProxy(picture);
}

void NumberedPicture::fitColumns()
{
    m_table->resizeColumnsToContents();
    int wanted = m_table->verticalScrollBar()->sizeHint().width() + 4;
    for (int column = 0; column < m_numbers->columnCount(); ++column)
        wanted += m_table->columnWidth(column);
    const int room = std::max(0, width() - leastPicture);
    m_table->setFixedWidth(std::min({wanted, room, width() / 2}));
    m_table->setVisible(m_numbers->rowCount() > 0 && room > 0);
}

void NumberedPicture::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    fitColumns();
}

} // namespace klineage::ui
