// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/quickopendelegate.h"

#include "ui/shell/commands/quickopenmodel.h"
#include "ui/style/icons.h"
#include "ui/style/theme.h"

#include <QPainter>

namespace klineage::ui {

QuickOpenDelegate::QuickOpenDelegate(const QuickOpenModel *model, QObject *parent)
    : QStyledItemDelegate(parent)
    , m_model(model)
{}

QSize QuickOpenDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &) const
{
    return {200, option.fontMetrics.height() + 11};
}

void QuickOpenDelegate::paint(QPainter *painter, const QStyleOptionViewItem &option,
                              const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    const QuickEntry &entry = m_model->entry(index.row());
    painter->save();
    painter->setFont(option.font);
    if (option.state & QStyle::State_Selected)
        painter->fillRect(option.rect, theme.selection);
    else if (option.state & QStyle::State_MouseOver)
        painter->fillRect(option.rect, theme.hover);
    QRect rect = option.rect.adjusted(12, 0, -12, 0);
    icon(entry.icon).paint(painter, QRect(rect.left(), rect.center().y() - 7, 15, 15));
    rect.setLeft(rect.left() + 25);

    painter->setPen(theme.dim);
    if (!entry.key.isEmpty()) {
        painter->drawText(rect, Qt::AlignVCenter | Qt::AlignRight, entry.key);
        rect.setRight(rect.right() - option.fontMetrics.horizontalAdvance(entry.key) - 12);
    }
    painter->setPen(theme.text);
    const QString title = option.fontMetrics.elidedText(entry.title, Qt::ElideRight, rect.width());
    painter->drawText(rect, Qt::AlignVCenter | Qt::AlignLeft, title);
    rect.setLeft(rect.left() + option.fontMetrics.horizontalAdvance(title) + 10);
    painter->setPen(theme.dim);
    if (rect.width() > 30)
        painter->drawText(rect, Qt::AlignVCenter | Qt::AlignLeft,
                          option.fontMetrics.elidedText(entry.detail, Qt::ElideRight, rect.width()));
    painter->restore();
}

} // namespace klineage::ui
