// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plotstyle.h"

#include "ui/style/theme.h"

#include <QApplication>

#include <array>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr std::array markers = {QCPScatterStyle::ssDisc, QCPScatterStyle::ssSquare,
                                QCPScatterStyle::ssDiamond, QCPScatterStyle::ssTriangle};

QColor seriesColor(std::size_t series)
{
    const Theme &theme = Theme::current();
    const std::array colors = {theme.accent, theme.warn, theme.dim, theme.good};
    return colors[series % colors.size()];
}

} // namespace

void stylePlot(QCustomPlot *plot, const QPalette &palette)
{
    const Theme &theme = Theme::current();
    QFont small = QApplication::font();
    small.setPointSizeF(small.pointSizeF() * 0.9);
    plot->setBackground(palette.color(QPalette::Base));
    for (QCPAxis *axis : {plot->xAxis, plot->yAxis, plot->xAxis2, plot->yAxis2}) {
        axis->setBasePen(QPen(theme.border, 0));
        axis->setTickPen(QPen(theme.border, 0));
        axis->setSubTickPen(Qt::NoPen);
        axis->setTickLabelColor(theme.dim);
        axis->setLabelColor(theme.dim);
        axis->setTickLabelFont(small);
        axis->setLabelFont(small);
        axis->grid()->setPen(QPen(theme.border, 0, Qt::DotLine));
        axis->grid()->setZeroLinePen(QPen(theme.border, 0));
    }
    plot->legend->setBrush(palette.color(QPalette::Base));
    plot->legend->setBorderPen(QPen(theme.border, 0));
    plot->legend->setTextColor(theme.text);
    plot->legend->setFont(small);
}

void stylePoints(QCPGraph *graph, std::size_t series)
{
    const QColor color = seriesColor(series);
    graph->setLineStyle(QCPGraph::lsNone);
    graph->setScatterStyle(
        QCPScatterStyle(markers[series % markers.size()], QPen(color, 0), QBrush(color), 5));
    graph->setPen(QPen(color, 0));
}

void styleSteps(QCPGraph *graph, std::size_t series)
{
    graph->setLineStyle(QCPGraph::lsStepLeft);
    graph->setScatterStyle(QCPScatterStyle::ssNone);
    graph->setPen(QPen(seriesColor(series), 0));
}

} // namespace klineage::ui
