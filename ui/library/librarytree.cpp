// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/library/librarytree.h"

#include "ui/models/librarymodel.h"
#include "ui/style/theme.h"

#include <QKeyEvent>
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
    setUniformRowHeights(false);
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

void LibraryTree::keyPressEvent(QKeyEvent *event)
{
    if (event->modifiers() == Qt::NoModifier && (event->key() == Qt::Key_J || event->key() == Qt::Key_K)) {
        QKeyEvent arrow(event->type(), event->key() == Qt::Key_J ? Qt::Key_Down : Qt::Key_Up, Qt::NoModifier);
        QTreeView::keyPressEvent(&arrow);
        return;
    }
    QTreeView::keyPressEvent(event);
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
