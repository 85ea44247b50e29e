// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/flowlayout.h"

#include <QWidget>

#include <algorithm>

namespace klineage::ui {

namespace {

bool expands(const QLayoutItem *item)
{
    return item->expandingDirections() & Qt::Horizontal;
}

} // namespace

FlowLayout::FlowLayout(int spacing, QWidget *parent)
    : QLayout(parent)
{
    setSpacing(spacing);
}

FlowLayout::~FlowLayout()
{
    qDeleteAll(m_items);
}

void FlowLayout::addItem(QLayoutItem *item)
{
    m_items << item;
}

int FlowLayout::count() const
{
    return static_cast<int>(m_items.size());
}

QLayoutItem *FlowLayout::itemAt(int index) const
{
    return m_items.value(index);
}

QLayoutItem *FlowLayout::takeAt(int index)
{
    return index >= 0 && index < count() ? m_items.takeAt(index) : nullptr;
}

QList<FlowLayout::Row> FlowLayout::rowsIn(int width) const
{
    QList<Row> rows;
    for (QLayoutItem *item : m_items) {
        if (item->isEmpty()) // hidden
            continue;
        const QSize wanted = item->sizeHint();
        if (rows.isEmpty() || rows.last().width + spacing() + wanted.width() > width)
            rows << Row{{}, -spacing(), 0};
        Row &row = rows.last();
        row.items << item;
        row.width += spacing() + wanted.width();
        row.height = std::max(row.height, wanted.height());
    }
    return rows;
}

int FlowLayout::heightForWidth(int width) const
{
    const QMargins margins = contentsMargins();
    int height = margins.top() + margins.bottom();
    const QList<Row> rows = rowsIn(width - margins.left() - margins.right());
    for (const Row &row : rows)
        height += row.height;
    return height + spacing() * std::max(0, static_cast<int>(rows.size()) - 1);
}

QSize FlowLayout::sizeHint() const
{
    constexpr int oneRow = 1 << 20;
    const QMargins margins = contentsMargins();
    QSize size(margins.left() + margins.right(), margins.top() + margins.bottom());
    const QList<Row> rows = rowsIn(oneRow);
    if (!rows.isEmpty())
        size += QSize(rows.first().width, rows.first().height);
    return size;
}

QSize FlowLayout::minimumSize() const
{
    QSize size;
    for (const QLayoutItem *item : m_items) {
        if (!item->isEmpty())
            size = size.expandedTo(item->minimumSize());
    }
    const QMargins margins = contentsMargins();
    return size + QSize(margins.left() + margins.right(), margins.top() + margins.bottom());
}

void FlowLayout::setGeometry(const QRect &rect)
{
    QLayout::setGeometry(rect);
    QRect rest = rect.marginsRemoved(contentsMargins());
    for (const Row &row : rowsIn(rest.width())) {
        place(row, QRect(rest.topLeft(), QSize(rest.width(), row.height)));
        rest.setTop(rest.top() + row.height + spacing());
    }
}

void FlowLayout::place(const Row &row, const QRect &rect) const
{
    auto expanding = static_cast<int>(std::count_if(row.items.begin(), row.items.end(), expands));
    int left = std::max(0, rect.width() - row.width);
    int x = rect.left();
    for (QLayoutItem *item : row.items) {
        const QSize wanted = item->sizeHint();
        int width = std::min(wanted.width(), rect.width());
        if (expands(item)) {
            width += left / expanding;
            left -= left / expanding;
            --expanding;
        }
        const int height = std::min(wanted.height(), row.height);
        const QRect at(x, rect.top() + (row.height - height) / 2, width, height);
        const bool isMirrored = parentWidget() && parentWidget()->isRightToLeft();
        item->setGeometry(isMirrored ? QRect(rect.left() + rect.right() - at.right(), at.top(), width, height)
                                     : at);
        x += width + spacing();
    }
}

} // namespace klineage::ui
