// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

class QCustomPlot;
class QPaintDevice;
class QWidget;

namespace klineage::ui {

/// Draws a widget as it is shown, with the plots in it as lines and text instead of as the picture that the screen has of them.
void drawWithPlots(QWidget &widget, QPaintDevice &device);
/// The same as a file of its own, titled with the widget's accessible name.
[[nodiscard]] QByteArray drawnAsSvg(QWidget &widget);
[[nodiscard]] QByteArray drawnAsPdf(QWidget &widget);

/// Empty on success, else a sentence; an existing file is replaced only when the new one is complete.
[[nodiscard]] QString saveExport(const QByteArray &bytes, const QString &fileName);

/// Writes a plot by the name's ending: png (at twice the size of the screen), svg, pdf. As saveExport().
[[nodiscard]] QString savePlot(QCustomPlot &plot, const QString &fileName);

} // namespace klineage::ui
