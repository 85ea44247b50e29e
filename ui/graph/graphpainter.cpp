// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/graph/graphpainter.h"

#include "ui/style/theme.h"

#include <QPainter>
#include <QPainterPath>

namespace klineage::ui {

namespace {

constexpr double laneStart = 14;
constexpr double laneStep = 14;
constexpr double radius = 4.5;

QColor nodeColor(const LineageRow &row)
{
    const Theme &theme = Theme::current();
    switch (row.graph.node) {
    case NodeShape::Best:
        return theme.good;
    case NodeShape::State:
        return row.stepTone == Tone::Neutral ? theme.dim : toneColor(row.stepTone);
    case NodeShape::Ungated:
        return theme.faint;
    case NodeShape::Failed:
        return theme.bad;
    case NodeShape::Rejected:
        return theme.warn;
    case NodeShape::Branch:
        return row.stepTone == Tone::Neutral ? theme.accent : toneColor(row.stepTone);
    }
    return theme.dim;
}

void paintLines(QPainter *painter, const QRectF &row, const GraphCell &cell)
{
    const double main = row.left() + laneStart;
    const double middle = row.center().y();
    painter->setPen(QPen(Theme::current().faint, 1.5));
    painter->setBrush(Qt::NoBrush);
    if (cell.lineAbove)
        painter->drawLine(QPointF(main, row.top()), QPointF(main, middle));
    if (cell.lineBelow)
        painter->drawLine(QPointF(main, middle), QPointF(main, row.bottom()));
    if (cell.lane == 0)
        return;
    const double node = main + cell.lane * laneStep;
    const double edge = cell.parentBelow ? row.bottom() : row.top();
    QPainterPath curve(QPointF(main, edge));
    curve.cubicTo(QPointF(main, middle), QPointF(main, middle), QPointF(node, middle));
    painter->drawPath(curve);
}

void paintNode(QPainter *painter, const QPointF &centre, const LineageRow &row, const QColor &ground)
{
    const QColor color = nodeColor(row);
    painter->setPen(QPen(color, 1.6));
    painter->setBrush(ground);
    switch (row.graph.node) {
    case NodeShape::Best:
        painter->drawEllipse(centre, radius + 1, radius + 1);
        painter->setPen(Qt::NoPen);
        painter->setBrush(color);
        painter->drawEllipse(centre, radius - 2, radius - 2);
        break;
    case NodeShape::State:
        painter->setBrush(color);
        painter->drawEllipse(centre, radius - 0.6, radius - 0.6);
        break;
    case NodeShape::Ungated:
        painter->setPen(QPen(color, 1.4, Qt::DotLine));
        painter->drawEllipse(centre, radius, radius);
        break;
    case NodeShape::Failed:
        painter->drawEllipse(centre, radius, radius);
        painter->drawLine(centre + QPointF(-1.6, -1.6), centre + QPointF(1.6, 1.6));
        painter->drawLine(centre + QPointF(-1.6, 1.6), centre + QPointF(1.6, -1.6));
        break;
    case NodeShape::Rejected:
        painter->drawEllipse(centre, radius, radius);
        painter->drawLine(centre + QPointF(-2, 0), centre + QPointF(2, 0));
        break;
    case NodeShape::Branch:
        painter->setBrush(color);
        painter->drawPolygon(QPolygonF({centre + QPointF(0, -radius), centre + QPointF(radius, 0),
                                        centre + QPointF(0, radius), centre + QPointF(-radius, 0)}));
        break;
    }
}

void paintStage(QPainter *painter, const QPointF &centre, StageOutcome outcome)
{
    const Theme &theme = Theme::current();
    switch (outcome) {
    case StageOutcome::Passed:
        painter->setPen(QPen(theme.good, 1.5, Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
        painter->drawPolyline(
            QPolygonF({centre + QPointF(-3, 0.2), centre + QPointF(-0.8, 2.4), centre + QPointF(3, -2.4)}));
        break;
    case StageOutcome::Failed:
        painter->setPen(QPen(theme.bad, 1.6, Qt::SolidLine, Qt::RoundCap));
        painter->drawLine(centre + QPointF(-2.4, -2.4), centre + QPointF(2.4, 2.4));
        painter->drawLine(centre + QPointF(-2.4, 2.4), centre + QPointF(2.4, -2.4));
        break;
    case StageOutcome::NotReached:
        painter->setPen(QPen(theme.faint, 2, Qt::SolidLine, Qt::RoundCap));
        painter->drawPoint(centre);
        break;
    }
}

} // namespace

int graphWidth()
{
    return static_cast<int>(laneStart + laneStep + radius) + 8;
}

void paintGraphCell(QPainter *painter, const QRectF &row, const LineageRow &shown, bool isCurrent)
{
    const Theme &theme = Theme::current();
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    paintLines(painter, row, shown.graph);
    const QPointF centre(row.left() + laneStart + shown.graph.lane * laneStep, row.center().y());
    if (isCurrent) {
        painter->setPen(QPen(theme.accent, 1.5));
        painter->setBrush(theme.panel);
        painter->drawEllipse(centre, radius + 3.5, radius + 3.5);
    }
    paintNode(painter, centre, shown, theme.panel);
    painter->restore();
}

void paintStages(QPainter *painter, const QRectF &rect, const StageOutcomes &stages)
{
    painter->save();
    painter->setRenderHint(QPainter::Antialiasing);
    painter->setBrush(Qt::NoBrush);
    const QPointF centre = rect.center();
    paintStage(painter, centre + QPointF(-10, 0), stages.compile);
    paintStage(painter, centre, stages.correctness);
    paintStage(painter, centre + QPointF(10, 0), stages.profile);
    painter->restore();
}

} // namespace klineage::ui
