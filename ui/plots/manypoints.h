// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <qcustomplot.h>

namespace klineage::ui {

/// A graph whose glyphs are many. On the screen, above some thousands, each is stamped into a picture instead of being drawn as a path: the
/// same picture, in a tenth of the time. Where lines and text stay such (SVG, PDF), of the glyphs at one place only one is drawn. Points
/// are never merged, moved or left out otherwise.
class ManyPoints : public QCPGraph
{
    Q_OBJECT

public:
    ManyPoints(QCPAxis *keys, QCPAxis *values);

protected:
    void drawScatterPlot(QCPPainter *painter, const QVector<QPointF> &scatters,
                         const QCPScatterStyle &style) const override;
};

} // namespace klineage::ui
