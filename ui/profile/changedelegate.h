// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStyledItemDelegate>

namespace klineage::ui {

/// Paints a change in the colour of its direction, with a glyph so that colour carries nothing alone; where the bars have no column of
/// their own, also its bar, thin, below the text.
class ChangeTextDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void setBarBelow(bool below) { m_barBelow = below; }
    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;

protected:
    void initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const override;

private:
    bool m_barBelow = false;
};

/// Paints the size of a change as a bar: BarRole is its length, DirectionRole its colour.
class ChangeBarDelegate : public QStyledItemDelegate
{
    Q_OBJECT

public:
    using QStyledItemDelegate::QStyledItemDelegate;

    void paint(QPainter *painter, const QStyleOptionViewItem &option,
               const QModelIndex &index) const override;
};

} // namespace klineage::ui
