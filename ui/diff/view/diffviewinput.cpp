// SPDX-License-Identifier: GPL-3.0-or-later
// Keys and mouse of DiffView.
#include "ui/diff/view/diffview.h"
#include "ui/diff/view/painter.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QContextMenuEvent>
#include <QHelpEvent>
#include <QKeyEvent>
#include <QMenu>
#include <QScrollBar>
#include <QTimer>
#include <QToolTip>

#include <algorithm>

namespace klineage::ui {

DiffView::Hit DiffView::hitTest(const QPoint &point)
{
    Hit hit;
    const DocumentPtr &shown = document();
    if (!shown || m_state.rows().count() == 0)
        return hit;
    const int row = std::clamp(rowAt(point.y()), 0, m_state.rows().count() - 1);
    const ViewRow &viewRow = m_state.rows().at(row);
    const diff::Row &diffRow = shown->diff.rows[static_cast<std::size_t>(viewRow.row)];
    if (m_state.isSplit())
        hit.side = m_geometry.column(Side::Left).rect.right() >= point.x() ? Side::Left : Side::Right;
    else if (viewRow.kind == ViewRow::Kind::Left || diffRow.rightLine < 0)
        hit.side = Side::Left;
    if (m_selecting)
        hit.side = m_state.selection.side; // a drag stays on the side where it began
    hit.position = positionOfRow(row, hit.side);
    const int line = lineOf(diffRow, hit.side);
    const ColumnGeometry &column = m_geometry.column(hit.side);
    if (viewRow.kind == ViewRow::Kind::Fold || line < 0)
        return hit;
    // In a wrapped row, what is left of the line that was pointed at is scrolled out, as it were.
    const int below = verticalScrollBar()->value() + point.y() - m_geometry.topOf(row);
    const int scrolled =
        horizontalScrollBar()->value() + std::max(0, below / m_geometry.rowHeight) * m_geometry.wrapWidth;
    const LineLayout &layout =
        m_layouts.line(shown->side(hit.side).text, hit.side, line, m_state.runs(hit.side, line), scrolled);
    hit.position.unit = layout.unitAt(point.x() - column.textLeft + scrolled);
    hit.inText = point.x() >= column.textLeft - 4;
    hit.inGutter = !hit.inText;
    return hit;
}

TextPosition DiffView::positionOfRow(int row, Side side) const
{
    // A row without that side stands for the end of the nearest line above.
    for (int i = m_state.rows().at(row).row; i >= 0; --i) {
        const int line = lineOf(document()->diff.rows[static_cast<std::size_t>(i)], side);
        if (line >= 0)
            return {line, i == m_state.rows().at(row).row ? 0 : 1 << 30};
    }
    return {0, 0};
}

void DiffView::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton || !document() || m_state.rows().count() == 0)
        return;
    const QPoint point = event->position().toPoint();
    const int row = rowAt(point.y());
    if (row < m_state.rows().count() && m_state.rows().at(row).kind == ViewRow::Kind::Fold) {
        reveal(m_state.rows().at(row).row);
        setCurrentRow(row);
        return;
    }
    const Hit hit = hitTest(point);
    const bool extend = event->modifiers() & Qt::ShiftModifier && hit.side == m_state.selection.side;
    if (extend) {
        m_state.selection.cursor = hit.position;
        if (hit.inGutter && m_state.selection.anchor < hit.position) // the line that was pointed at, too
            m_state.selection.cursor = {hit.position.line + 1, 0};
    } else if (hit.inGutter) { // selects lines
        m_state.selection = {hit.side, {hit.position.line, 0}, {hit.position.line + 1, 0}};
    } else {
        m_state.selection = {hit.side, hit.position, hit.position};
    }
    m_selecting = true;
    setCurrentRow(row);
}

void DiffView::extendTo(const QPoint &point)
{
    const int limited = std::clamp(point.y(), 0, viewport()->height() - 1);
    m_state.selection.cursor = hitTest({point.x(), limited}).position;
    viewport()->update();
}

void DiffView::mouseMoveEvent(QMouseEvent *event)
{
    const QPoint point = event->position().toPoint();
    if (m_selecting && event->buttons() & Qt::LeftButton) {
        extendTo(point);
        const bool outside = point.y() < 0 || point.y() >= viewport()->height();
        if (outside && !m_autoScroll->isActive())
            m_autoScroll->start();
        else if (!outside)
            m_autoScroll->stop();
        return;
    }
    const int row = rowAt(point.y());
    const bool fold = row < m_state.rows().count() && m_state.rows().at(row).kind == ViewRow::Kind::Fold;
    const bool text = !fold && hitTest(point).inText;
    viewport()->setCursor(fold ? Qt::PointingHandCursor : text ? Qt::IBeamCursor : Qt::ArrowCursor);
}

void DiffView::autoScroll()
{
    const QPoint point = viewport()->mapFromGlobal(QCursor::pos());
    const int beyond = point.y() < 0 ? point.y() : std::max(0, point.y() - viewport()->height());
    if (!m_selecting || beyond == 0) {
        m_autoScroll->stop();
        return;
    }
    verticalScrollBar()->setValue(verticalScrollBar()->value() + beyond);
    extendTo(point);
}

void DiffView::mouseReleaseEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton)
        return;
    m_selecting = false;
    m_autoScroll->stop();
    if (QApplication::clipboard()->supportsSelection() && !m_state.selection.isEmpty())
        QApplication::clipboard()->setText(selectedText(), QClipboard::Selection);
}

void DiffView::mouseDoubleClickEvent(QMouseEvent *event)
{
    const Hit hit = hitTest(event->position().toPoint());
    if (event->button() != Qt::LeftButton || !hit.inText)
        return;
    m_state.selection = wordAt(*document(), hit.side, hit.position);
    viewport()->update();
}

QString DiffView::toolTipAt(const QPoint &point) const
{
    const int row = rowAt(point.y());
    if (row >= m_state.rows().count())
        return {};
    QStringList lines;
    const bool atLeft = point.x() <= m_geometry.column(Side::Left).rect.right();
    const ColumnGeometry &column = m_geometry.column(atLeft ? Side::Left : Side::Right);
    for (const Side side : {Side::Left, Side::Right}) {
        if (column.heatLeft[static_cast<std::size_t>(side)] >= 0 && point.x() < column.textLeft)
            lines << heatOfRow(row, side);
        const bool isShownHere = !m_state.isSplit() || (side == Side::Left) == atLeft;
        if (isShownHere && point.x() < column.textLeft)
            lines << commentsOfRow(row, side);
    }
    if (m_state.rows().at(row).kind == ViewRow::Kind::Fold)
        lines << tr("Click to show these lines");
    lines.removeAll(QString());
    return lines.join(u'\n');
}

bool DiffView::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip && document()) {
        const auto *help = static_cast<QHelpEvent *>(event);
        const QString tip = toolTipAt(help->pos());
        if (tip.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), tip, this);
        return true;
    }
    return QAbstractScrollArea::viewportEvent(event);
}

void DiffView::contextMenuEvent(QContextMenuEvent *event)
{
    if (!document() || m_state.rows().count() == 0)
        return;
    QMenu menu(this);
    if (!m_state.selection.isEmpty())
        menu.addAction(m_copyCode);
    menu.addAction(m_selectCode);
    const int row = std::clamp(rowAt(event->pos().y()), 0, m_state.rows().count() - 1);
    const int diffRow = m_state.rows().at(row).row;
    const int there = movedCounterpart(*document(), diffRow);
    if (there >= 0) {
        const Side side =
            document()->diff.rows[static_cast<std::size_t>(diffRow)].leftLine >= 0 ? Side::Right : Side::Left;
        menu.addAction(tr("&Go to the other end of this move"), this, [=, this] { goToLine(side, there); });
    }
    menu.exec(event->globalPos());
}

void DiffView::keyPressEvent(QKeyEvent *event)
{
    if (!document() || m_state.rows().count() == 0) {
        QAbstractScrollArea::keyPressEvent(event);
        return;
    }
    const bool extend = event->modifiers() & Qt::ShiftModifier;
    const bool control = event->modifiers() & Qt::ControlModifier;
    const int page = std::max(1, viewport()->height() / m_geometry.rowHeight - 2);
    int row = m_state.currentRow;
    switch (event->key()) {
    case Qt::Key_Down:
        ++row;
        break;
    case Qt::Key_Up:
        --row;
        break;
    case Qt::Key_PageDown:
        row += page;
        break;
    case Qt::Key_PageUp:
        row -= page;
        break;
    case Qt::Key_Home:
        if (!control) {
            horizontalScrollBar()->setValue(0);
            return;
        }
        row = 0;
        break;
    case Qt::Key_End:
        if (!control) {
            horizontalScrollBar()->setValue(horizontalScrollBar()->maximum());
            return;
        }
        row = m_state.rows().count() - 1;
        break;
    case Qt::Key_Left:
    case Qt::Key_Right:
        if (control) {
            event->ignore(); // steps through the chain
            return;
        }
        horizontalScrollBar()->triggerAction(event->key() == Qt::Key_Left ? QScrollBar::SliderSingleStepSub
                                                                          : QScrollBar::SliderSingleStepAdd);
        return;
    case Qt::Key_Return:
    case Qt::Key_Space:
        if (!control && m_state.rows().at(row).kind == ViewRow::Kind::Fold) {
            reveal(m_state.rows().at(row).row);
            setCurrentRow(row);
            return;
        }
        event->ignore();
        return;
    default:
        QAbstractScrollArea::keyPressEvent(event);
        return;
    }
    if (control && event->key() != Qt::Key_Home && event->key() != Qt::Key_End) {
        event->ignore();
        return;
    }
    if (extend && m_state.selection.isEmpty())
        m_state.selection.anchor = m_state.selection.cursor =
            positionOfRow(m_state.currentRow, m_state.selection.side);
    setCurrentRow(row, extend);
    ensureVisible(m_state.currentRow);
}

QString DiffView::selectedText() const
{
    return document() ? ui::selectedText(*document(), m_state.selection) : QString();
}

void DiffView::copy() const
{
    const QString text = selectedText();
    if (!text.isEmpty())
        QApplication::clipboard()->setText(text);
}

void DiffView::nameCommands(const QString &prefix)
{
    m_copyCode->setObjectName(prefix + QStringLiteral(".copyCode"));
    m_selectCode->setObjectName(prefix + QStringLiteral(".selectCode"));
}

void DiffView::takeCommands(QAction *copyCode, QAction *selectCode)
{
    for (QAction *own : {m_copyCode, m_selectCode}) {
        if (own && own->parent() == this)
            delete own;
    }
    m_copyCode = copyCode;
    m_selectCode = selectCode;
    addActions({copyCode, selectCode});
    connect(copyCode, &QAction::triggered, this, &DiffView::copy);
    connect(selectCode, &QAction::triggered, this, &DiffView::selectAll);
}

void DiffView::selectAll()
{
    if (!document())
        return;
    const Side side = document()->has(m_state.selection.side) ? m_state.selection.side : Side::Right;
    m_state.selection = {side, {0, 0}, {document()->side(side).text.count(), 0}};
    viewport()->update();
}

} // namespace klineage::ui
