// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPalette>

#include <cstddef>

class QCPGraph;
class QCustomPlot;

namespace klineage::ui {

/// Gives a plot the window's colours, fonts and hairlines. One-pixel pens only: QCustomPlot is fast with those.
void stylePlot(QCustomPlot *plot, const QPalette &palette);

/// A series of points without a line; series differ in colour and in marker.
void stylePoints(QCPGraph *graph, std::size_t series);

/// A stepped line that holds its value to the right (running best).
void styleSteps(QCPGraph *graph, std::size_t series);

} // namespace klineage::ui
