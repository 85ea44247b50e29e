// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/diff/view/overviewstrip.h"

#include <QMouseEvent>
#include <QPainter>
#include <QScrollBar>

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double smallestMark = 2;
constexpr double smallestThumb = 18;

} // namespace

OverviewStrip::OverviewStrip(const ViewState &state, const ViewGeometry &geometry, QScrollBar *scrollBar,
                             QWidget *parent)
    : QWidget(parent)
    , m_state(state)
    , m_geometry(geometry)
    , m_scrollBar(scrollBar)
{
    setAccessibleName(tr("Overview of the changes"));
    setCursor(Qt::ArrowCursor);
    connect(scrollBar, &QScrollBar::valueChanged, this, qOverload<>(&QWidget::update));
    connect(scrollBar, &QScrollBar::rangeChanged, this, qOverload<>(&QWidget::update));
}

void OverviewStrip::setPalette(const CodePalette &palette)
{
    m_palette = palette;
    update();
}

void OverviewStrip::documentChanged()
{
    m_marks.clear();
    const ViewRows &rows = m_state.rows();
    for (int i = 0; i < rows.count(); ++i) {
        const ViewRow &viewRow = rows.at(i);
        if (viewRow.kind == ViewRow::Kind::Fold)
            continue;
        const diff::Row &row = m_state.document()->diff.rows[static_cast<std::size_t>(viewRow.row)];
        if (row.kind == diff::Row::Kind::Equal)
            continue;
        const Mark mark{i, 1, row.leftLine >= 0 && viewRow.kind != ViewRow::Kind::Right,
                        row.rightLine >= 0 && viewRow.kind != ViewRow::Kind::Left, row.moved >= 0};
        Mark *last = m_marks.empty() ? nullptr : &m_marks.back();
        if (last && last->firstRow + last->rowCount == i && last->left == mark.left
            && last->right == mark.right && last->moved == mark.moved)
            ++last->rowCount;
        else
            m_marks.push_back(mark);
    }
    update();
}

double OverviewStrip::yOf(int row) const
{
    // Short texts keep their scale: a mark lies beside its line.
    const double content = m_geometry.topOf(m_state.rows().count());
    return m_geometry.topOf(row) * std::min(1.0, height() / std::max(1.0, content));
}

void OverviewStrip::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    painter.fillRect(rect(), m_palette.background);
    painter.fillRect(QRect(0, 0, 1, height()), m_palette.separator);
    const int middle = width() / 2;
    for (const Mark &mark : m_marks) {
        const double top = yOf(mark.firstRow);
        const double length = std::max(smallestMark, yOf(mark.firstRow + mark.rowCount) - top);
        const auto bar = [&](double left, double right, QColor color) {
            color.setAlphaF(0.85f);
            painter.fillRect(QRectF(left, top, right - left, length), color);
        };
        if (mark.left)
            bar(3, mark.right ? middle : middle, mark.moved ? m_palette.movedBar : m_palette.removedBar);
        if (mark.right)
            bar(middle + 1, width() - 2, mark.moved ? m_palette.movedBar : m_palette.addedBar);
    }
    for (const Side side : {Side::Left, Side::Right}) {
        if (!m_state.comments)
            break;
        for (const CommentMark &mark : m_state.comments->side(side)) {
            const int row =
                m_state.rows().indexOf(m_state.rows().diffRowOf(side, mark.lines.first - 1), side);
            painter.fillRect(QRectF(width() - 5, yOf(row), 4, 4),
                             mark.isResolved ? m_palette.muted : m_palette.accent);
        }
    }
    if (m_scrollBar->maximum() <= 0)
        return;
    const double total = m_scrollBar->maximum() + m_scrollBar->pageStep();
    const double top = height() * m_scrollBar->value() / total;
    const double length = std::max(smallestThumb, height() * m_scrollBar->pageStep() / total);
    QColor thumb = m_palette.muted;
    thumb.setAlphaF(underMouse() ? 0.38f : 0.24f);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(thumb);
    painter.drawRoundedRect(QRectF(2, std::min(top, height() - length), width() - 3, length), 3, 3);
}

void OverviewStrip::scrollTo(int y)
{
    const double total = m_scrollBar->maximum() + m_scrollBar->pageStep();
    m_scrollBar->setValue(
        static_cast<int>(y * total / std::max(1, height()) - m_scrollBar->pageStep() / 2.0));
}

void OverviewStrip::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        scrollTo(event->position().toPoint().y());
}

void OverviewStrip::mouseMoveEvent(QMouseEvent *event)
{
    if (event->buttons() & Qt::LeftButton)
        scrollTo(event->position().toPoint().y());
}

} // namespace klineage::ui
