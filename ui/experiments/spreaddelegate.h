// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

/// Final speedups of a row of PolicyTableModel on one logarithmic scale: a bar from the reference (1×) to the geometric mean, a dot
/// a success, and × a failure at the left end.
class SpreadDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;
    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;
    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override;
};

} // namespace klineage::ui
