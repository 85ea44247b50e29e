// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QColor>
#include <QPalette>
#include <QString>

#include <cstddef>

class QCPAxisRect;
class QCPGraph;
class QCPItemLine;
class QCPItemText;
class QCustomPlot;

namespace klineage::ui {

/// Gives a plot the window's colours, fonts and hairlines. One-pixel pens only: QCustomPlot is fast with those.
void stylePlot(QCustomPlot *plot, const QPalette &palette);

/// The same for the axes of one of several rectangles of a plot.
void styleAxes(QCPAxisRect *rect);

/// From now on axes of a low or narrow plot leave out numbers that would stand on each other, and names that would be cut.
void spareAxes(QCustomPlot *plot);

/// A line across the axes at 1×.
void spanWidthAtOne(QCPItemLine *line);

/// Names the reference right of the axes at 1×, where there are no points.
void nameReference(QCPItemText *text, QCPAxisRect *rect, const QString &name);

/// Series differ in colour and in how their line is dashed.
[[nodiscard]] QColor seriesColor(std::size_t series);
[[nodiscard]] Qt::PenStyle seriesDash(std::size_t series);

/// A series of points without a line; series differ in colour and in marker.
void stylePoints(QCPGraph *graph, std::size_t series);

/// A stepped line that holds its value to the right (running best).
void styleSteps(QCPGraph *graph, std::size_t series);

} // namespace klineage::ui
