// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/plots/manypoints.h"

#include <QSet>

#include <algorithm>
#include <cmath>
#include <vector>

namespace klineage::ui {

namespace {

constexpr qsizetype many = 2000;

/// The glyph once, at the resolution of the screen, around its middle.
QImage stampOf(const QCPScatterStyle &style, const QPen &pen, double ratio)
{
    const int side = 2 * static_cast<int>(std::ceil((style.size() / 2 + 2) * ratio)) + 1;
    QImage stamp(side, side, QImage::Format_ARGB32_Premultiplied);
    stamp.fill(Qt::transparent);
    QCPPainter painter;
    if (!painter.begin(&stamp))
        return {};
    painter.setAntialiasing(true);
    painter.scale(ratio, ratio);
    style.applyTo(&painter, pen);
    style.drawShape(&painter, side / (2 * ratio), side / (2 * ratio));
    painter.end();
    return stamp;
}

/// The inked part of each line of a stamp, so that its empty corners cost nothing.
struct Span {
    int begin = 0;
    int end = 0;
};
std::vector<Span> spansOf(const QImage &stamp)
{
    std::vector<Span> spans;
    for (int row = 0; row < stamp.height(); ++row) {
        const auto *line = reinterpret_cast<const QRgb *>(stamp.constScanLine(row));
        Span span{0, stamp.width()};
        while (span.begin < span.end && qAlpha(line[span.begin]) == 0)
            ++span.begin;
        while (span.end > span.begin && qAlpha(line[span.end - 1]) == 0)
            --span.end;
        spans.push_back(span);
    }
    return spans;
}

/// One glyph of a colour above others of it: the more opaque pixel stays.
void press(QImage &onto, const QImage &stamp, const std::vector<Span> &spans, int x, int y)
{
    for (int row = std::max(0, -y); row < std::min(stamp.height(), onto.height() - y); ++row) {
        const Span span = spans[static_cast<std::size_t>(row)];
        const int end = std::min(span.end, onto.width() - x);
        const auto *from = reinterpret_cast<const QRgb *>(stamp.constScanLine(row));
        auto *to = reinterpret_cast<QRgb *>(onto.scanLine(y + row)) + x;
        for (int column = std::max(span.begin, -x); column < end; ++column) {
            if (qAlpha(from[column]) > qAlpha(to[column]))
                to[column] = from[column];
        }
    }
}

QVector<QPointF> onePerPixel(const QVector<QPointF> &scatters)
{
    QSet<QPoint> taken;
    QVector<QPointF> kept;
    for (const QPointF &at : scatters) {
        const QPoint pixel(static_cast<int>(std::floor(at.x())), static_cast<int>(std::floor(at.y())));
        if (std::isfinite(at.x()) && std::isfinite(at.y()) && !taken.contains(pixel)) {
            taken.insert(pixel);
            kept.append(at);
        }
    }
    return kept;
}

} // namespace

ManyPoints::ManyPoints(QCPAxis *keys, QCPAxis *values)
    : QCPGraph(keys, values)
{
    setAdaptiveSampling(false); // it leaves points out
}

void ManyPoints::drawScatterPlot(QCPPainter *painter, const QVector<QPointF> &scatters,
                                 const QCPScatterStyle &style) const
{
    if (scatters.size() < many) {
        QCPGraph::drawScatterPlot(painter, scatters, style);
        return;
    }
    if (painter->modes().testFlag(QCPPainter::pmVectorized)) {
        QCPGraph::drawScatterPlot(painter, onePerPixel(scatters), style);
        return;
    }
    const QRect area = clipRect();
    const double ratio = mParentPlot->bufferDevicePixelRatio();
    const QImage stamp = stampOf(style, mPen, ratio);
    const std::vector<Span> spans = spansOf(stamp);
    QImage picture(area.size() * ratio, QImage::Format_ARGB32_Premultiplied);
    picture.setDevicePixelRatio(ratio);
    picture.fill(Qt::transparent);
    for (const QPointF &at : scatters) {
        if (!std::isfinite(at.x()) || !std::isfinite(at.y()))
            continue;
        press(picture, stamp, spans,
              static_cast<int>(std::floor((at.x() - area.left()) * ratio)) - stamp.width() / 2,
              static_cast<int>(std::floor((at.y() - area.top()) * ratio)) - stamp.height() / 2);
    }
    painter->drawImage(area.topLeft(), picture);
}

} // namespace klineage::ui
