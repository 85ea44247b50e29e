// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/pictureview.h"

#include <algorithm>

namespace klineage::ui {

namespace {

constexpr double nearestUnits = 1; ///< unit across the plot
constexpr double revealMargin = 0.12;

QRectF around(const QPointF &centre, double width, double height)
{
    return {centre.x() - width / 2, centre.y() - height / 2, width, height};
}

/// The interval moved, so that it lies in another, or the other way round where it is longer.
double movedInto(double from, double length, double low, double high)
{
    if (length >= high - low)
        return std::clamp(from, high - length, low);
    return std::clamp(from, low, high - length);
}

} // namespace

QRectF PictureView::whole() const
{
    double width = std::max(m_world.width(), 1e-9);
    double height = std::max(m_world.height(), 1e-9);
    if (m_mostPixels.width() > 0)
        width = std::max(width, m_plot.width() / m_mostPixels.width());
    if (m_mostPixels.height() > 0)
        height = std::max(height, m_plot.height() / m_mostPixels.height());
    return around(m_world.center(), width, height);
}

void PictureView::fit(const QRectF &world, const QRectF &plot, const QSizeF &mostPixels)
{
    m_world = world;
    m_plot = QRectF(plot.topLeft(), plot.size().expandedTo(QSizeF(1, 1)));
    m_mostPixels = mostPixels;
    m_seen = whole();
    m_isFitted = true;
}

void PictureView::movePlot(const QRectF &plot)
{
    const QRectF fresh(plot.topLeft(), plot.size().expandedTo(QSizeF(1, 1)));
    if (fresh == m_plot)
        return;
    const double width = fresh.width() / xScale();
    const double height = fresh.height() / yScale();
    m_plot = fresh;
    if (m_isFitted) {
        m_seen = whole();
        return;
    }
    m_seen = around(m_seen.center(), width, height);
    keepInWorld();
}

QRectF PictureView::toPixels(const QRectF &units) const
{
    return QRectF(toPixels(units.topLeft()), toPixels(units.bottomRight())).normalized();
}

void PictureView::zoomAt(const QPointF &pixel, double factor)
{
    const QRectF all = whole();
    const double least = std::min(all.width() / 8, nearestUnits);
    const double by = std::clamp(factor, m_seen.width() / all.width(), m_seen.width() / least);
    const QPointF fixed = toUnits(pixel);
    const double width = m_seen.width() / by;
    const double height = m_seen.height() / by;
    const double left = fixed.x() - (fixed.x() - m_seen.left()) / by;
    const double low = fixed.y() - (fixed.y() - m_seen.top()) / by;
    m_seen = QRectF(left, low, width, height);
    keepInWorld();
    m_isFitted = width > all.width() * (1 - 1e-6);
    if (m_isFitted)
        m_seen = all;
}

void PictureView::panBy(const QPointF &pixels)
{
    m_seen.translate(-pixels.x() / xScale(), pixels.y() / yScale());
    keepInWorld();
}

void PictureView::centreOn(const QPointF &unit)
{
    m_seen = around(unit, m_seen.width(), m_seen.height());
    keepInWorld();
}

void PictureView::reveal(const QPointF &unit)
{
    const QRectF inner = m_seen.adjusted(m_seen.width() * revealMargin, m_seen.height() * revealMargin,
                                         -m_seen.width() * revealMargin, -m_seen.height() * revealMargin);
    const double dx = std::min(0.0, unit.x() - inner.left()) + std::max(0.0, unit.x() - inner.right());
    const double dy = std::min(0.0, unit.y() - inner.top()) + std::max(0.0, unit.y() - inner.bottom());
    m_seen.translate(dx, dy);
    keepInWorld();
}

void PictureView::keepInWorld()
{
    const QRectF all = whole();
    m_seen.moveTo(movedInto(m_seen.left(), m_seen.width(), all.left(), all.right()),
                  movedInto(m_seen.top(), m_seen.height(), all.top(), all.bottom()));
}

} // namespace klineage::ui
