// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/plainwidgets.h"

#include "ui/style/columnscale.h"

#include <QHeaderView>
#include <QLabel>
#include <QTableView>

namespace klineage::ui {

QTableView *makePlainTable(QAbstractItemModel *model, const QString &name)
{
    auto *table = new QTableView;
    table->setModel(model);
    table->setAccessibleName(name);
    table->setSelectionBehavior(QAbstractItemView::SelectRows);
    table->setSelectionMode(QAbstractItemView::SingleSelection);
    table->setEditTriggers(QAbstractItemView::NoEditTriggers);
    table->setTabKeyNavigation(false);
    table->setShowGrid(false);
    table->setWordWrap(false);
    table->setFrameShape(QFrame::NoFrame);
    table->verticalHeader()->hide();
    table->verticalHeader()->setDefaultSectionSize(table->fontMetrics().height() + 8);
    table->horizontalHeader()->setHighlightSections(false);
    new ColumnScale(table);
    return table;
}

QLabel *makeMessageLabel(const QString &text)
{
    auto *label = new QLabel(text);
    label->setWordWrap(true);
    label->setAlignment(Qt::AlignCenter);
    label->setMargin(16);
    label->setEnabled(false);
    return label;
}

} // namespace klineage::ui
