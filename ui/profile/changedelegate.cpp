// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/profile/changedelegate.h"

#include "ui/profile/profilemodel.h"
#include "ui/style/theme.h"

#include <QApplication>
#include <QPainter>

#include <algorithm>

namespace klineage::ui {

namespace {

QColor colorOf(int direction)
{
    const Theme &theme = Theme::current();
    return direction > 0 ? theme.good : direction < 0 ? theme.bad : theme.dim;
}

} // namespace

void ChangeTextDelegate::initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const
{
    QStyledItemDelegate::initStyleOption(option, index);
    const int direction = index.data(ProfileModel::DirectionRole).toInt();
    if (direction != 0)
        option->text += direction > 0 ? QStringLiteral(" ▲") : QStringLiteral(" ▼");
    option->palette.setColor(QPalette::Text, colorOf(direction));
    option->palette.setColor(QPalette::HighlightedText, colorOf(direction));
}

void ChangeTextDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                               const QModelIndex &index) const
{
    QStyledItemDelegate::paint(painter, option, index);
    const double length = index.data(ProfileModel::BarRole).toDouble();
    if (!m_barBelow || length <= 0)
        return;
    const QRect room = option.rect.adjusted(4, 0, -4, 0);
    const int width = std::max(2, static_cast<int>(room.width() * std::min(1.0, length)));
    painter->fillRect(QRect(room.right() - width + 1, option.rect.bottom() - 2, width, 2),
                      colorOf(index.data(ProfileModel::DirectionRole).toInt()));
}

void ChangeBarDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                              const QModelIndex &index) const
{
    QStyledItemDelegate::paint(painter, option, index);
    const double length = index.data(ProfileModel::BarRole).toDouble();
    if (length <= 0)
        return;
    QRectF bar = QRectF(option.rect).adjusted(6, 0, -8, 0);
    bar.setTop(option.rect.center().y() - 3.5);
    bar.setHeight(8);
    bar.setWidth(std::max(2.0, std::min(bar.width(), 120.0) * length));
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(Qt::NoPen);
    painter->setBrush(colorOf(index.data(ProfileModel::DirectionRole).toInt()));
    painter->drawRoundedRect(bar, 2, 2);
    painter->restore();
}

} // namespace klineage::ui
