// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

class QuickOpenModel;

/// Paints an entry: icon, title, dim detail, key at the right.
class QuickOpenDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    QuickOpenDelegate(const QuickOpenModel *model, QObject *parent);

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;
    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override;

private:
    const QuickOpenModel *m_model;
};

} // namespace klineage::ui
