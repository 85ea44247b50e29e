// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/plotstyle.h"

#include "ui/style/theme.h"

#include <QApplication>

#include <algorithm>
#include <array>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr std::array markers = {QCPScatterStyle::ssDisc,    QCPScatterStyle::ssSquare,
                                QCPScatterStyle::ssDiamond, QCPScatterStyle::ssTriangle,
                                QCPScatterStyle::ssPlus,    QCPScatterStyle::ssTriangleInverted,
                                QCPScatterStyle::ssCross};

void styleAxis(QCPAxis *axis, const QFont &small)
{
    const Theme &theme = Theme::current();
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

QFont plotFont()
{
    QFont small = QApplication::font();
    small.setPointSizeF(small.pointSizeF() * 0.9);
    return small;
}

/// As many numbers as have room apart, and a name that is not cut; what does not fit is not seen. It keeps its place: an axis must not
/// change the room that decides of the other one. True: the axis has changed.
bool spareAxis(QCPAxis *axis, const QRect &plot)
{
    constexpr int mostTicks = 5;
    constexpr double linesApart = 1.4;
    constexpr double lettersApart = 5;
    const QFontMetrics metrics(axis->tickLabelFont());
    const bool isAcross = axis->orientation() == Qt::Horizontal;
    const QRect rect = axis->axisRect()->rect();
    const double apart = isAcross ? lettersApart * metrics.averageCharWidth() : linesApart * metrics.height();
    const int ticks = static_cast<int>((isAcross ? rect.width() : rect.height()) / apart);
    const int half = metrics.horizontalAdvance(axis->label()) / 2;
    const int middle = isAcross ? rect.center().x() : rect.center().y();
    const bool isCut = middle - half < 0 || middle + half > (isAcross ? plot.width() : plot.height());
    const auto inkIf = [](bool isSeen) { return isSeen ? Theme::current().dim : QColor(Qt::transparent); };
    const int wanted = std::clamp(ticks, 2, mostTicks);
    if (axis->ticker()->tickCount() == wanted && axis->labelColor() == inkIf(!isCut)
        && axis->tickLabelColor() == inkIf(ticks >= 2))
        return false;
    axis->ticker()->setTickCount(wanted);
    axis->setLabelColor(inkIf(!isCut));
    axis->setTickLabelColor(inkIf(ticks >= 2));
    return true;
}

} // namespace

QColor seriesColor(std::size_t series)
{
    const Theme &theme = Theme::current();
    const QColor violet = theme.isDark ? QColor(0xc79bf2) : QColor(0x7440b0);
    const QColor teal = theme.isDark ? QColor(0x62cfd0) : QColor(0x0b7280);
    const QColor rose = theme.isDark ? QColor(0xf2a0c8) : QColor(0xa8336f);
    const std::array colors = {theme.accent, theme.warn, theme.dim, theme.good, violet, teal, rose};
    return colors[series % colors.size()];
}

Qt::PenStyle seriesDash(std::size_t series)
{
    constexpr std::array dashes = {Qt::SolidLine, Qt::DashLine, Qt::DashDotLine, Qt::DotLine};
    return dashes[series % dashes.size()];
}

void styleAxes(QCPAxisRect *rect)
{
    for (QCPAxis *axis : rect->axes())
        styleAxis(axis, plotFont());
}

void stylePlot(QCustomPlot *plot, const QPalette &palette)
{
    plot->setMinimumSize(plot->minimumSize().expandedTo(QSize(1, 1))); // it cannot paint on nothing
    plot->setPlottingHint(QCP::phImmediateRefresh, false); // painted with all else, not by itself before that
    const Theme &theme = Theme::current();
    const QFont small = plotFont();
    plot->setBackground(palette.color(QPalette::Base));
    for (QCPAxis *axis : {plot->xAxis, plot->yAxis, plot->xAxis2, plot->yAxis2})
        styleAxis(axis, small);
    plot->legend->setBrush(palette.color(QPalette::Base));
    plot->legend->setBorderPen(QPen(theme.border, 0));
    plot->legend->setTextColor(theme.text);
    plot->legend->setFont(small);
}

void spareAxes(QCustomPlot *plot)
{
    QObject::connect(plot, &QCustomPlot::afterLayout, plot, [plot] {
        bool hasChanged = false;
        for (QCPAxisRect *rect : plot->axisRects()) {
            for (QCPAxis *axis : rect->axes())
                hasChanged = spareAxis(axis, plot->viewport()) || hasChanged;
        }
        if (hasChanged)
            plot->replot(QCustomPlot::rpQueuedReplot);
    });
}

void spanWidthAtOne(QCPItemLine *line)
{
    for (QCPItemPosition *end : {line->start, line->end}) {
        end->setTypeX(QCPItemPosition::ptAxisRectRatio);
        end->setTypeY(QCPItemPosition::ptPlotCoords);
    }
    line->start->setCoords(0, 1);
    line->end->setCoords(1, 1);
}

void nameReference(QCPItemText *text, QCPAxisRect *rect, const QString &name)
{
    constexpr int gap = 5;
    constexpr int mostChars = 16; // the table behind the plot says it whole
    const QFontMetrics metrics(plotFont());
    const QString shown = metrics.elidedText(name, Qt::ElideRight, mostChars * metrics.averageCharWidth());
    text->setText(shown);
    text->setFont(plotFont());
    text->setColor(Theme::current().dim);
    text->setClipToAxisRect(false);
    text->setPositionAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    text->setPadding(QMargins(gap, 0, 0, 0));
    text->position->setTypeX(QCPItemPosition::ptAxisRectRatio);
    text->position->setTypeY(QCPItemPosition::ptPlotCoords);
    text->position->setCoords(1, 1);
    // Outside the axes nothing clips it, so it hides when 1× is scrolled away.
    QCPAxis *axis = rect->axis(QCPAxis::atLeft);
    const auto follow = [text, axis] { text->setVisible(axis->range().contains(1)); };
    QObject::disconnect(axis, qOverload<const QCPRange &>(&QCPAxis::rangeChanged), text, nullptr);
    QObject::connect(axis, qOverload<const QCPRange &>(&QCPAxis::rangeChanged), text, follow);
    follow();
    rect->setAutoMargins(QCP::msLeft | QCP::msTop | QCP::msBottom);
    rect->setMargins(QMargins(0, 0, metrics.horizontalAdvance(shown) + 2 * gap, 0));
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
