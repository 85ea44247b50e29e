// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>

namespace klineage::ui {

/// Which part of a picture is seen, and where: from its units to pixels and back. y goes up in the one and down in the other.
class PictureView
{
public:
    /// Shows all of the world in the plot, but a unit no larger than mostPixels (0: as it fits): then the world is in the middle.
    void fit(const QRectF &world, const QRectF &plot, const QSizeF &mostPixels = {});
    /// The plot has another size; what is seen keeps its scale and its middle, or all is seen as before.
    void movePlot(const QRectF &plot);

    [[nodiscard]] QRectF seen() const { return m_seen; } ///< in units, normalized
    [[nodiscard]] QRectF plot() const { return m_plot; } ///< in pixels
    [[nodiscard]] bool isFitted() const { return m_isFitted; }
    [[nodiscard]] double xScale() const { return m_plot.width() / m_seen.width(); } ///< pixels in a unit
    [[nodiscard]] double yScale() const { return m_plot.height() / m_seen.height(); }

    [[nodiscard]] QPointF toPixels(const QPointF &unit) const
    {
        return {m_plot.left() + (unit.x() - m_seen.left()) * xScale(),
                m_plot.bottom() - (unit.y() - m_seen.top()) * yScale()};
    }
    [[nodiscard]] QPointF toUnits(const QPointF &pixel) const
    {
        return {m_seen.left() + (pixel.x() - m_plot.left()) / xScale(),
                m_seen.top() + (m_plot.bottom() - pixel.y()) / yScale()};
    }
    [[nodiscard]] QRectF toPixels(const QRectF &units) const;

    /// factor > 1: nearer. What is at the pixel stays there; between all of the world and a unit of it.
    void zoomAt(const QPointF &pixel, double factor);
    void panBy(const QPointF &pixels);
    void centreOn(const QPointF &unit);
    /// Moves as little as is needed for a point to be seen, with some room around it.
    void reveal(const QPointF &unit);

private:
    void keepInWorld();
    [[nodiscard]] QRectF whole() const;

    QRectF m_world{0, 0, 1, 1};
    QRectF m_plot{0, 0, 1, 1};
    QRectF m_seen{0, 0, 1, 1};
    QSizeF m_mostPixels;
    bool m_isFitted = true;
};

} // namespace klineage::ui
