// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/cards/relationgraph.h"

#include "ui/style/fonts.h"
#include "ui/style/theme.h"

#include <QKeyEvent>
#include <QMouseEvent>
#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <numeric>

namespace klineage::ui {

namespace {

constexpr int columnWidth = 22;
constexpr int graphMargin = 12;
constexpr double dotRadius = 4;

} // namespace

RelationGraph::RelationGraph(QWidget *parent)
    : QWidget(parent)
{
    setFocusPolicy(Qt::TabFocus);
    setAccessibleName(tr("Cards around this one"));
    setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
}

void RelationGraph::setSurroundings(const skills::Surroundings &around)
{
    std::vector<std::size_t> order(around.nodes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return around.nodes[a].column < around.nodes[b].column;
    });
    std::vector<int> rowOf(order.size());
    m_rows.clear();
    for (const std::size_t node : order) {
        rowOf[node] = static_cast<int>(m_rows.size());
        m_rows.push_back({QString::fromStdString(around.nodes[node].card), around.nodes[node].column});
    }
    m_edges.clear();
    for (const auto &edge : around.edges)
        m_edges.emplace_back(rowOf[edge.from], rowOf[edge.to]);
    m_firstColumn = m_rows.empty() ? 0 : m_rows.front().column;
    m_lastColumn = m_rows.empty() ? 0 : m_rows.back().column;
    const auto self =
        std::find_if(m_rows.begin(), m_rows.end(), [](const Row &row) { return row.column == 0; });
    setCurrent(static_cast<int>(self - m_rows.begin()));
    setVisible(m_rows.size() > 1);
    updateGeometry();
}

QStringList RelationGraph::rows() const
{
    QStringList names;
    for (const Row &row : m_rows)
        names << row.card;
    return names;
}

int RelationGraph::rowHeight() const
{
    return fontMetrics().height() + 5;
}

QSize RelationGraph::sizeHint() const
{
    return {200, static_cast<int>(m_rows.size()) * rowHeight() + 2 * 6};
}

QPointF RelationGraph::dot(int row) const
{
    const Row &held = m_rows[static_cast<std::size_t>(row)];
    return {graphMargin + (held.column - m_firstColumn + 0.5) * columnWidth, 6 + (row + 0.5) * rowHeight()};
}

QString RelationGraph::inWords(int row) const
{
    const Row &held = m_rows[static_cast<std::size_t>(row)];
    QStringList before;
    QStringList after;
    for (const auto &[from, to] : m_edges) {
        if (to == row)
            before << m_rows[static_cast<std::size_t>(from)].card;
        if (from == row)
            after << m_rows[static_cast<std::size_t>(to)].card;
    }
    QStringList parts{held.card};
    if (!before.isEmpty())
        parts << tr("rests on %1").arg(before.join(QStringLiteral(", ")));
    if (!after.isEmpty())
        parts << tr("makes %1 possible").arg(after.join(QStringLiteral(", ")));
    return parts.join(QStringLiteral("; "));
}

void RelationGraph::setCurrent(int row)
{
    m_current = std::clamp(row, 0, std::max(0, static_cast<int>(m_rows.size()) - 1));
    if (!m_rows.empty()) {
        setAccessibleDescription(inWords(m_current));
        setToolTip(inWords(m_current));
    }
    update();
}

void RelationGraph::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    painter.fillRect(rect(), theme.panel);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(QPen(theme.dim, 1.2));
    for (const auto &[from, to] : m_edges) {
        const QPointF a = dot(from);
        const QPointF b = dot(to);
        QPainterPath path(a);
        path.cubicTo({a.x(), b.y()}, {a.x(), b.y()}, b);
        painter.drawPath(path);
    }
    const double textLeft = graphMargin + (m_lastColumn - m_firstColumn + 1) * columnWidth + 6;
    for (int row = 0; row < static_cast<int>(m_rows.size()); ++row) {
        const Row &held = m_rows[static_cast<std::size_t>(row)];
        const QPointF centre = dot(row);
        const QRectF line(textLeft, 6 + row * rowHeight(), width() - textLeft - graphMargin, rowHeight());
        if (row == m_current && hasFocus())
            painter.fillRect(QRectF(0, line.top(), width(), line.height()), theme.selection);
        const bool isSelf = held.column == 0;
        painter.setPen(QPen(isSelf ? theme.accent : theme.dim, 1.4));
        painter.setBrush(isSelf ? theme.accent : theme.panel);
        painter.drawEllipse(centre, dotRadius, dotRadius);
        painter.setPen(theme.text);
        painter.setFont(isSelf ? strongFont() : font());
        painter.drawText(
            line, Qt::AlignVCenter | Qt::AlignLeft,
            painter.fontMetrics().elidedText(held.card, Qt::ElideRight, static_cast<int>(line.width())));
    }
}

void RelationGraph::keyPressEvent(QKeyEvent *event)
{
    switch (event->key()) {
    case Qt::Key_Up:
    case Qt::Key_Down:
        setCurrent(m_current + (event->key() == Qt::Key_Down ? 1 : -1));
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        chooseRow(m_current);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void RelationGraph::mouseReleaseEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        chooseRow(static_cast<int>((event->position().y() - 6) / rowHeight()));
}

void RelationGraph::chooseRow(int row)
{
    if (row < 0 || row >= static_cast<int>(m_rows.size()))
        return;
    setCurrent(row);
    const QString card = m_rows[static_cast<std::size_t>(row)].card; // whoever shows it replaces the rows
    emit cardChosen(card);
}

} // namespace klineage::ui
