// SPDX-License-Identifier: GPL-3.0-or-later
// Where the texts of RooflinePlot stand.
#include "ui/plots/roofline/labelplaces.h"
#include "ui/plots/roofline/rooflineplot.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <qcustomplot.h>

namespace klineage::ui {

namespace {

constexpr int textGap = 4;

}

/// After each layout: names depend on where the points come to lie in pixels.
void RooflinePlot::placeTexts()
{
    if (m_names.empty())
        return;
    const QRectF room = QRectF(m_plot->axisRect()->rect()).adjusted(2, 2, -2, -2);
    std::vector<QRectF> taken;
    m_caption->position->setCoords(2 * textGap, m_plot->axisRect()->top());
    const QFontMetrics metrics(m_caption->font());
    m_notice->position->setCoords(room.left() + textGap, room.bottom());
    if (!m_notice->text().isEmpty())
        taken.emplace_back(room.left(), room.bottom() - metrics.height(),
                           metrics.horizontalAdvance(m_notice->text()) + 2 * textGap, metrics.height());
    placeCeilingNames(taken);

    // The selected state's name has the first choice, then the path from its end.
    std::vector<std::size_t> order;
    for (std::size_t i = m_names.size(); i-- > 0;)
        order.push_back(i);
    std::stable_sort(order.begin(), order.end(), [this](std::size_t a, std::size_t b) {
        const auto rank = [this](std::size_t i) {
            return m_names[i].text->text() == m_view.selected ? 0 : i < m_view.length ? 1 : 2;
        };
        return rank(a) < rank(b);
    });
    std::vector<PlacedName> names;
    for (const std::size_t i : order) {
        const gate::RooflinePoint &point = m_view.path.points[i];
        const QFontMetrics own(m_names[i].text->font());
        names.push_back(
            {{m_plot->xAxis->coordToPixel(point.intensity), m_plot->yAxis->coordToPixel(point.perSecond)},
             QSizeF(own.horizontalAdvance(m_names[i].text->text()) + 2, own.height() - 2)});
    }
    const auto places = placeNames(names, room, taken);
    m_places.assign(m_names.size(), std::nullopt);
    for (std::size_t k = 0; k < order.size(); ++k) {
        const Name &name = m_names[order[k]];
        m_places[order[k]] = places[k];
        name.text->setVisible(places[k].has_value());
        name.leader->setVisible(places[k].has_value());
        if (!places[k])
            continue;
        name.text->position->setCoords(places[k]->center());
        const QPointF point = names[k].point;
        const QPointF near(std::clamp(point.x(), places[k]->left(), places[k]->right()),
                           std::clamp(point.y(), places[k]->top(), places[k]->bottom()));
        name.leader->start->setCoords(point);
        name.leader->end->setCoords(near);
        name.leader->setVisible(QLineF(point, near).length() > 2 * textGap);
    }
}

/// A level's name stands on its right end, a slope's along it; one that has no room is not shown.
void RooflinePlot::placeCeilingNames(std::vector<QRectF> &taken)
{
    const QRectF room = m_plot->axisRect()->rect();
    for (const Ceiling &ceiling : m_ceilings) {
        const QFontMetrics metrics(ceiling.name->font());
        const bool isRoomy = metrics.horizontalAdvance(ceiling.whole) < room.width() / 2;
        ceiling.name->setText(isRoomy ? ceiling.whole : ceiling.brief);
        const QSizeF size(metrics.horizontalAdvance(ceiling.name->text()), metrics.height());
        const auto ends = ceiling.line->data();
        const double y = m_plot->yAxis->coordToPixel(ends->at(1)->value);
        const double endX = m_plot->xAxis->coordToPixel(ends->at(1)->key);
        if (ceiling.bandwidth <= 0) {
            const double right = std::min(endX, room.right()) - textGap;
            ceiling.name->setPositionAlignment(Qt::AlignRight | Qt::AlignBottom);
            ceiling.name->position->setCoords(right, y);
            ceiling.name->setVisible(y - size.height() > room.top() && y < room.bottom());
            taken.emplace_back(right - size.width(), y - size.height(), size.width(), size.height());
            continue;
        }
        const double oneX = m_plot->xAxis->coordToPixel(10 * m_plot->xAxis->range().lower) - room.left();
        const double oneY = room.bottom() - m_plot->yAxis->coordToPixel(10 * m_plot->yAxis->range().lower);
        const double angle = std::atan2(oneY, oneX);
        const double bendX = std::min(endX, room.right());
        const double bendY =
            m_plot->yAxis->coordToPixel(ceiling.bandwidth * m_plot->xAxis->pixelToCoord(bendX));
        // What is seen of the slope, from the bend down to the axes.
        const double length =
            std::min((bendX - room.left()) / std::cos(angle), (room.bottom() - bendY) / std::sin(angle));
        const bool fits = length > size.width() + 2 * textGap && bendY > room.top();
        ceiling.name->setVisible(fits);
        ceiling.name->setRotation(-angle * 180 / std::numbers::pi);
        ceiling.name->setPositionAlignment(Qt::AlignHCenter | Qt::AlignBottom);
        const double middle = length / 2;
        const QPointF at(bendX - middle * std::cos(angle), bendY + middle * std::sin(angle));
        ceiling.name->position->setCoords(at);
        // A turned name is taken as small squares along it.
        for (double along = -size.width() / 2; fits && along < size.width() / 2; along += size.height()) {
            const QPointF base = at + QPointF(along * std::cos(angle), -along * std::sin(angle));
            taken.emplace_back(base.x() - size.height(), base.y() - size.height(), 1.5 * size.height(),
                               size.height());
        }
    }
}

} // namespace klineage::ui
