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

/// The inked part of a line of a stamp: its empty corners cost nothing.
struct Span {
    int row = 0;
    int begin = 0;
    int end = 0;
    const QRgb *line = nullptr;
};
std::vector<Span> spansOf(const QImage &stamp)
{
    std::vector<Span> spans;
    for (int row = 0; row < stamp.height(); ++row) {
        const auto *line = reinterpret_cast<const QRgb *>(stamp.constScanLine(row));
        Span span{row, 0, stamp.width(), line};
        while (span.begin < span.end && qAlpha(line[span.begin]) == 0)
            ++span.begin;
        while (span.end > span.begin && qAlpha(line[span.end - 1]) == 0)
            --span.end;
        if (span.begin < span.end)
            spans.push_back(span);
    }
    return spans;
}

/// Pixels of a picture, without the calls that QImage takes for each line.
struct Pixels {
    explicit Pixels(QImage &picture)
        : first(reinterpret_cast<QRgb *>(picture.bits()))
        , perLine(picture.bytesPerLine() / static_cast<qsizetype>(sizeof(QRgb)))
        , width(picture.width())
        , height(picture.height())
    {}
    QRgb *first;
    qsizetype perLine;
    int width;
    int height;
};

/// One glyph of a colour above others of it: the more opaque pixel stays.
void press(const Pixels &onto, const std::vector<Span> &spans, int x, int y)
{
    for (const Span &span : spans) {
        if (y + span.row < 0 || y + span.row >= onto.height)
            continue;
        const int end = std::min(span.end, onto.width - x);
        QRgb *to = onto.first + (y + span.row) * onto.perLine + x;
        for (int column = std::max(span.begin, -x); column < end; ++column) {
            if (qAlpha(span.line[column]) > qAlpha(to[column]))
                to[column] = span.line[column];
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
    const Pixels pixels(picture);
    // By the place of a stamp's corner; one that is there already changes nothing.
    const int columns = pixels.width + stamp.width();
    const int rows = pixels.height + stamp.height();
    std::vector<bool> isStamped(static_cast<std::size_t>(columns) * static_cast<std::size_t>(rows));
    for (const QPointF &at : scatters) {
        const double left = std::floor((at.x() - area.left()) * ratio) + stamp.width() - stamp.width() / 2;
        const double top = std::floor((at.y() - area.top()) * ratio) + stamp.height() - stamp.height() / 2;
        if (!(left >= 0 && left < columns && top >= 0 && top < rows)) // nor what is no number
            continue;
        const auto place = static_cast<std::size_t>(top) * static_cast<std::size_t>(columns)
                           + static_cast<std::size_t>(left);
        if (isStamped[place])
            continue;
        isStamped[place] = true;
        press(pixels, spans, static_cast<int>(left) - stamp.width(), static_cast<int>(top) - stamp.height());
    }
    painter->drawImage(area.topLeft(), picture);
}

} // namespace klineage::ui
