// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/spreaddelegate.h"

#include "ui/experiments/policytablemodel.h"
#include "ui/plots/plotstyle.h"
#include "ui/style/theme.h"

#include <QPainter>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr int failureRoom = 9; // pixels a failure's cross takes
constexpr int mostCrosses = 5;

void drawCross(QPainter *painter, const QPointF &centre)
{
    painter->drawLine(centre + QPointF(-2.5, -2.5), centre + QPointF(2.5, 2.5));
    painter->drawLine(centre + QPointF(-2.5, 2.5), centre + QPointF(2.5, -2.5));
}

} // namespace

QSize SpreadDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    return {140, QStyledItemDelegate::sizeHint(option, index).height()};
}

void SpreadDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                           const QModelIndex &index) const
{
    QStyledItemDelegate::paint(painter, option, index); // background, selection
    const auto spread = index.data(PolicyTableModel::SpreadRole).value<Spread>();
    const Theme &theme = Theme::current();
    const QColor color = seriesColor(spread.series);
    const QRectF area = QRectF(option.rect).adjusted(8, 3, -8, -3);
    const int crosses = std::min(spread.failures, mostCrosses);
    const QRectF scale = area.adjusted(mostCrosses * failureRoom, 0, 0, 0);
    const auto place = [&](double speedup) {
        return scale.left()
               + scale.width() * (std::log(speedup) - spread.left) / (spread.right - spread.left);
    };
    painter->save();
    painter->setClipRect(option.rect);
    painter->setRenderHint(QPainter::Antialiasing);
    const double middle = area.center().y();
    painter->setPen(QPen(theme.dim, 1, Qt::DotLine));
    painter->drawLine(QPointF(place(1), area.top() - 3), QPointF(place(1), area.bottom() + 3));
    if (spread.mean > 0) {
        const double left = std::min(place(1), place(spread.mean));
        const double right = std::max(place(1), place(spread.mean));
        painter->fillRect(QRectF(left, middle - 3, std::max(1.0, right - left), 6),
                          blend(color, theme.panel, 0.35));
        painter->setPen(QPen(color, 2));
        painter->drawLine(QPointF(place(spread.mean), middle - 5), QPointF(place(spread.mean), middle + 5));
    }
    painter->setPen(QPen(theme.panel, 1));
    painter->setBrush(color);
    for (const double final : spread.finals)
        painter->drawEllipse(QPointF(place(final), middle), 3.5, 3.5);
    painter->setPen(QPen(theme.bad, 1.4));
    for (int i = 0; i < crosses; ++i)
        drawCross(painter, {area.left() + failureRoom * (i + 0.5), middle});
    painter->restore();
}

} // namespace klineage::ui
