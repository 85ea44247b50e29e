// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/runs/lineagechecks.h"

#include "core/workspace/workspace.h"

#include <algorithm>

namespace klineage::ui {

LineageChecks::LineageChecks(const Workspace &workspace, QWidget *parent)
    : QListWidget(parent)
{
    setObjectName(QStringLiteral("lineageChecks"));
    setSelectionMode(QAbstractItemView::NoSelection);
    for (const lineage::Lineage &lineage : workspace.lineages) {
        auto *item = new QListWidgetItem(QString::fromStdString(lineage.key()), this);
        item->setFlags(Qt::ItemIsEnabled | Qt::ItemIsUserCheckable);
        item->setCheckState(Qt::Unchecked);
        item->setToolTip(QString::fromStdString(lineage.title));
    }
}

QStringList LineageChecks::checked() const
{
    QStringList keys;
    for (int row = 0; row < count(); ++row) {
        if (item(row)->checkState() == Qt::Checked)
            keys << item(row)->text();
    }
    return keys;
}

void LineageChecks::setChecked(const QStringList &keys)
{
    for (int row = 0; row < count(); ++row)
        item(row)->setCheckState(keys.contains(item(row)->text()) ? Qt::Checked : Qt::Unchecked);
}

void LineageChecks::showEvent(QShowEvent *event)
{
    QListWidget::showEvent(event);
    for (int row = 0; row < count(); ++row) {
        if (item(row)->checkState() == Qt::Checked) {
            scrollToItem(item(row), QAbstractItemView::PositionAtCenter);
            break;
        }
    }
}

QSize LineageChecks::sizeHint() const
{
    const int rows = std::clamp(count(), 2, 6);
    return {200, rows * std::max(sizeHintForRow(0), fontMetrics().height() + 4) + 2 * frameWidth() + 2};
}

} // namespace klineage::ui
