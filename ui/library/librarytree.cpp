// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/librarytree.h"

#include "ui/models/librarymodel.h"
#include "ui/style/currentrowkeeper.h"
#include "ui/style/theme.h"

#include <QMouseEvent>
#include <QPainter>

namespace klineage::ui {

namespace {

bool isSection(const QModelIndex &index)
{
    return index.data(LibraryModel::KindRole).toInt() == static_cast<int>(LibraryModel::Kind::Section);
}

} // namespace

LibraryTree::LibraryTree(QWidget *parent)
    : QTreeView(parent)
{
    setHeaderHidden(true);
    setIndentation(16);
    setRootIsDecorated(false);
    setMouseTracking(true);
    setFrameShape(QFrame::NoFrame);
    setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    setVerticalScrollMode(QAbstractItemView::ScrollPerPixel);
    setExpandsOnDoubleClick(false);
    setUniformRowHeights(true); // else a keystroke in the filter asks for the height of each of thousands
    setSelectionMode(QAbstractItemView::ExtendedSelection);
    new CurrentRowKeeper(this);
}

void LibraryTree::selectAll()
{
    QItemSelection cards;
    for (int section = 0; section < model()->rowCount(); ++section) {
        const QModelIndex parent = model()->index(section, 0);
        const QModelIndex first = model()->index(0, 0, parent);
        if (first.isValid() && LibraryModel::kindOf(first) == LibraryModel::Kind::Card)
            cards.select(first, model()->index(model()->rowCount(parent) - 1, 0, parent));
    }
    selectionModel()->select(cards, QItemSelectionModel::ClearAndSelect);
}

void LibraryTree::goOn(bool select)
{
    const QModelIndex current = currentIndex();
    if (!current.isValid())
        return;
    selectionModel()->select(current, select ? QItemSelectionModel::Select : QItemSelectionModel::Deselect);
    QModelIndex next = indexBelow(current);
    while (next.isValid() && isSection(next))
        next = indexBelow(next);
    if (!next.isValid())
        return;
    selectionModel()->setCurrentIndex(next, QItemSelectionModel::NoUpdate);
    scrollTo(next);
}

void LibraryTree::drawRow(QPainter *painter, const QStyleOptionViewItem &option,
                          const QModelIndex &index) const
{
    const Theme &theme = Theme::current();
    const QRect rect = option.rect;
    if (!isSection(index)) {
        if (selectionModel()->isSelected(index))
            painter->fillRect(rect, hasFocus() ? theme.selection : blend(theme.selection, theme.panel, 0.7));
        else if (rect.contains(viewport()->mapFromGlobal(QCursor::pos())))
            painter->fillRect(rect, theme.hover);
    }
    QTreeView::drawRow(painter, option, index);
    if (hasFocus() && index == currentIndex())
        painter->fillRect(QRect(rect.left(), rect.top(), 2, rect.height()), theme.accent);
}

void LibraryTree::drawBranches(QPainter *painter, const QRect &rect, const QModelIndex &index) const
{
    if (isSection(index) || !model()->hasChildren(index))
        return;
    const QPointF centre(rect.right() - 7, rect.center().y() + 0.5);
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setPen(QPen(Theme::current().dim, 1.4, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
    if (isExpanded(index))
        painter->drawPolyline(QPolygonF(
            {centre + QPointF(-3.5, -1.75), centre + QPointF(0, 1.75), centre + QPointF(3.5, -1.75)}));
    else
        painter->drawPolyline(QPolygonF(
            {centre + QPointF(-1.75, -3.5), centre + QPointF(1.75, 0), centre + QPointF(-1.75, 3.5)}));
    painter->restore();
}

void LibraryTree::mouseReleaseEvent(QMouseEvent *event)
{
    const QModelIndex index = indexAt(event->pos());
    const bool wasCurrent = index.isValid() && index == currentIndex();
    QTreeView::mouseReleaseEvent(event);
    if (wasCurrent && event->button() == Qt::LeftButton && model()->hasChildren(index) && !isSection(index)
        && visualRect(index).contains(event->pos()))
        setExpanded(index, !isExpanded(index));
}

} // namespace klineage::ui
