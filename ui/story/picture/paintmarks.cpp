// SPDX-License-Identifier: GPL-3.0-or-later
//
// Level of detail. A glyph costs some microseconds and a curve more, so that a frame has room for some hundreds of them. Where more are
// seen, a mark is a point, an edge is a hairline, what falls on pixels that have it already is left out, and of long edges only a part is drawn: the cost of a frame then
// follows the number of pixels, and one pass over what there is.
#include "ui/story/picture/paintparts.h"

#include "ui/plots/plotstyle.h"
#include "ui/style/theme.h"

#include <QPainter>
#include <QPainterPath>

#include <algorithm>
#include <cmath>
#include <cstdint>

namespace klineage::ui {

namespace {

constexpr std::size_t mostGlyphs = 260;
constexpr std::size_t mostCurves = 120;
constexpr double mostEdgePixels = 250'000; // of hairlines in a frame
constexpr double pointSize = 3;            // pixels of a mark from afar
constexpr double bendPixels = 36;          // within which an edge changes its lane

/// Things by ink: few inks, many things.
template <typename Thing>
class ByInk
{
public:
    void add(const Ink &ink, const Thing &thing)
    {
        if (m_last >= m_groups.size() || !(m_groups[m_last].first == ink)) {
            m_last = 0;
            while (m_last < m_groups.size() && !(m_groups[m_last].first == ink))
                ++m_last;
            if (m_last == m_groups.size())
                m_groups.push_back({ink, {}});
        }
        m_groups[m_last].second.push_back(thing);
    }
    [[nodiscard]] const auto &groups() const { return m_groups; }

private:
    std::vector<std::pair<Ink, std::vector<Thing>>> m_groups;
    std::size_t m_last = 0;
};

/// The view's transform with its divisions done.
class Placer
{
public:
    explicit Placer(const PictureView &view)
        : m_origin(view.toPixels(QPointF(0, 0)))
        , m_x(view.xScale())
        , m_y(view.yScale())
    {}
    [[nodiscard]] QPointF operator()(const QPointF &unit) const
    {
        return {m_origin.x() + unit.x() * m_x, m_origin.y() - unit.y() * m_y};
    }

private:
    QPointF m_origin;
    double m_x;
    double m_y;
};

/// Remembers what was drawn lately by its place; forgets some, which costs time and no correctness.
class Drawn
{
public:
    Drawn()
        : m_seen(1u << 15, 0)
    {}
    /// True the first time.
    bool add(const QLineF &line)
    {
        const auto at = [](double v) {
            return static_cast<std::uint64_t>(static_cast<std::int64_t>(v / 2)) & 0xffff;
        };
        const std::uint64_t key =
            (at(line.x1()) | at(line.y1()) << 16 | at(line.x2()) << 32 | at(line.y2()) << 48) + 1;
        std::uint64_t &slot = m_seen[(key * 0x9e3779b97f4a7c15ull) >> 49];
        if (slot == key)
            return false;
        slot = key;
        return true;
    }

private:
    std::vector<std::uint64_t> m_seen;
};

QPainterPath bent(const QLineF &edge)
{
    QPainterPath path(edge.p1());
    if (std::abs(edge.dy()) < 0.5) {
        path.lineTo(edge.p2());
        return path;
    }
    const double bend = std::clamp(edge.dx(), -bendPixels, bendPixels);
    const QPointF turned(edge.x1() + bend, edge.y2());
    path.cubicTo({edge.x1() + bend * 0.15, edge.y2()}, {edge.x1() + bend * 0.3, edge.y2()}, turned);
    path.lineTo(edge.p2());
    return path;
}

QPen edgePen(const Ink &ink, double width)
{
    return QPen(inkColor(ink), width);
}

struct SeenEdges {
    ByInk<QLineF> plain;
    ByInk<QLineF> dashed;
    std::size_t count = 0;
    double pixels = 0; ///< lengths of all of them
};

SeenEdges seenEdges(const Picture &picture, const PictureView &view)
{
    SeenEdges seen;
    const QRectF room = view.plot();
    const Placer place(view);
    Drawn drawn;
    for (const PictureEdge &edge : picture.edges) {
        const QLineF line(place(picture.marks[static_cast<std::size_t>(edge.from)].at),
                          place(picture.marks[static_cast<std::size_t>(edge.to)].at));
        if (std::max(line.x1(), line.x2()) < room.left() || std::min(line.x1(), line.x2()) > room.right()
            || std::max(line.y1(), line.y2()) < room.top() || std::min(line.y1(), line.y2()) > room.bottom())
            continue;
        if (std::abs(line.dx()) < 1 && std::abs(line.dy()) < 1)
            continue;
        if (!drawn.add(line))
            continue;
        (edge.dashed ? seen.dashed : seen.plain).add(edge.ink, line);
        ++seen.count;
        seen.pixels +=
            std::min(std::abs(line.dx()), room.width()) + std::min(std::abs(line.dy()), room.height());
    }
    return seen;
}

void paintCurves(QPainter &painter, const ByInk<QLineF> &edges, const QRectF &room, Qt::PenStyle dash)
{
    painter.setBrush(Qt::NoBrush);
    for (const auto &[ink, lines] : edges.groups()) {
        QPen pen = edgePen(ink, 1.3);
        pen.setStyle(dash);
        painter.setPen(pen);
        // One after the other: a path of all of them is slower by far.
        for (const QLineF &line : lines) {
            if (room.contains(line.p1()) && room.contains(line.p2()))
                painter.drawPath(bent(line));
            else if (const auto part = clipped(line, room))
                painter.drawLine(*part);
        }
    }
}

/// share: the part of the long ones that is drawn, where all of them would be a blot.
void paintHairlines(QPainter &painter, const ByInk<QLineF> &edges, const QRectF &room, double share)
{
    constexpr double shortPixels = 8;
    double owed = 0;
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (const auto &[ink, lines] : edges.groups()) {
        std::vector<QLineF> inside;
        inside.reserve(lines.size());
        for (const QLineF &line : lines) {
            const bool isShort = std::abs(line.dx()) + std::abs(line.dy()) < shortPixels;
            if (!isShort && (owed += share) < 1)
                continue;
            owed -= isShort ? 0 : 1;
            if (const auto part = clipped(line, room))
                inside.push_back(*part);
        }
        painter.setPen(edgePen(ink, 0));
        painter.drawLines(inside.data(), static_cast<int>(inside.size()));
    }
    painter.setRenderHint(QPainter::Antialiasing);
}

/// Each pixel of a mark's size once.
void paintPoints(QPainter &painter, const Picture &picture, const std::vector<QPointF> &places,
                 const std::vector<std::size_t> &seen, const QRectF &room)
{
    const auto columns = static_cast<std::size_t>(room.width() / pointSize) + 2;
    const auto rows = static_cast<std::size_t>(room.height() / pointSize) + 2;
    std::vector<bool> taken(columns * rows, false);
    ByInk<QPointF> points;
    for (const std::size_t i : seen) {
        const auto column = static_cast<std::size_t>((places[i].x() - room.left()) / pointSize);
        const auto row = static_cast<std::size_t>((places[i].y() - room.top()) / pointSize);
        if (taken[row * columns + column])
            continue;
        taken[row * columns + column] = true;
        points.add(picture.marks[i].ink, places[i]);
    }
    painter.setRenderHint(QPainter::Antialiasing, false);
    for (const auto &[ink, at] : points.groups()) {
        painter.setPen(QPen(inkColor(ink), pointSize, Qt::SolidLine, Qt::SquareCap));
        painter.drawPoints(at.data(), static_cast<int>(at.size()));
    }
    painter.setRenderHint(QPainter::Antialiasing);
}

} // namespace

QColor inkColor(const Ink &ink)
{
    const Theme &theme = Theme::current();
    QColor color;
    switch (ink.role) {
    case Ink::Role::Text:
        color = theme.text;
        break;
    case Ink::Role::Dim:
        color = theme.dim;
        break;
    case Ink::Role::Faint:
        color = theme.faint;
        break;
    case Ink::Role::Border:
        color = theme.border;
        break;
    case Ink::Role::Accent:
        color = theme.accent;
        break;
    case Ink::Role::Good:
        color = theme.good;
        break;
    case Ink::Role::Warn:
        color = theme.warn;
        break;
    case Ink::Role::Bad:
        color = theme.bad;
        break;
    case Ink::Role::Series:
        color = seriesColor(ink.series);
        break;
    }
    return ink.opacity < 1 ? blend(color, theme.panel, ink.opacity) : color;
}

double markRadius(const QFont &font)
{
    return std::max(3.5, QFontMetricsF(font).height() * 0.28);
}

std::optional<QLineF> clipped(QLineF line, const QRectF &room)
{
    double from = 0;
    double to = 1;
    const double dx = line.dx();
    const double dy = line.dy();
    const double steps[4] = {-dx, dx, -dy, dy};
    const double distances[4] = {line.x1() - room.left(), room.right() - line.x1(), line.y1() - room.top(),
                                 room.bottom() - line.y1()};
    for (int edge = 0; edge < 4; ++edge) {
        if (steps[edge] == 0) {
            if (distances[edge] < 0)
                return {};
            continue;
        }
        const double at = distances[edge] / steps[edge];
        if (steps[edge] < 0)
            from = std::max(from, at);
        else
            to = std::min(to, at);
    }
    if (from > to)
        return {};
    return QLineF(line.pointAt(from), line.pointAt(to));
}

void paintGlyph(QPainter &painter, const QPointF &c, Glyph glyph, const QColor &color, double r)
{
    const QColor ground = Theme::current().panel;
    painter.setPen(QPen(color, 1.5));
    painter.setBrush(ground);
    switch (glyph) {
    case Glyph::Disc:
        painter.setBrush(color);
        painter.drawEllipse(c, r - 0.6, r - 0.6);
        break;
    case Glyph::Best:
        painter.drawEllipse(c, r + 1, r + 1);
        painter.setPen(Qt::NoPen);
        painter.setBrush(color);
        painter.drawEllipse(c, r - 2, r - 2);
        break;
    case Glyph::Ungated:
        painter.setPen(QPen(color, 1.4, Qt::DotLine));
        painter.drawEllipse(c, r, r);
        break;
    case Glyph::Rejected:
        painter.drawEllipse(c, r, r);
        painter.drawLine(c + QPointF(-r * 0.45, 0), c + QPointF(r * 0.45, 0));
        break;
    case Glyph::Crossed:
        painter.drawEllipse(c, r, r);
        painter.drawLine(c + QPointF(-r, -r) * 0.36, c + QPointF(r, r) * 0.36);
        painter.drawLine(c + QPointF(-r, r) * 0.36, c + QPointF(r, -r) * 0.36);
        break;
    case Glyph::Branch:
        painter.setBrush(color);
        [[fallthrough]];
    case Glyph::Diamond:
        painter.drawPolygon(QPolygonF({c + QPointF(0, -r * 1.25), c + QPointF(r * 1.25, 0),
                                       c + QPointF(0, r * 1.25), c + QPointF(-r * 1.25, 0)}));
        break;
    case Glyph::Cross:
        painter.drawLine(c + QPointF(-r, -r) * 0.8, c + QPointF(r, r) * 0.8);
        painter.drawLine(c + QPointF(-r, r) * 0.8, c + QPointF(r, -r) * 0.8);
        break;
    case Glyph::Triangle:
        painter.drawPolygon(
            QPolygonF({c + QPointF(0, -r * 1.1), c + QPointF(r, r * 0.8), c + QPointF(-r, r * 0.8)}));
        break;
    case Glyph::Square:
        painter.drawRect(QRectF(c.x() - r * 0.8, c.y() - r * 0.8, r * 1.6, r * 1.6));
        break;
    case Glyph::Ring:
        painter.drawEllipse(c, r - 0.4, r - 0.4);
        break;
    case Glyph::Dot:
        painter.setBrush(color);
        painter.drawEllipse(c, r * 0.5, r * 0.5);
        break;
    }
}

void paintEdges(QPainter &painter, const Picture &picture, const PictureView &view)
{
    const SeenEdges seen = seenEdges(picture, view);
    if (seen.count <= mostCurves) {
        paintCurves(painter, seen.plain, view.plot(), Qt::SolidLine);
        paintCurves(painter, seen.dashed, view.plot(), Qt::DashLine);
        return;
    }
    const double share = std::min(1.0, mostEdgePixels / std::max(seen.pixels, 1.0));
    paintHairlines(painter, seen.plain, view.plot(), share);
    paintHairlines(painter, seen.dashed, view.plot(), share);
}

void paintMarks(QPainter &painter, const Picture &picture, const PictureView &view, double radius)
{
    std::vector<QPointF> places;
    std::vector<std::size_t> seen;
    places.reserve(picture.marks.size());
    const Placer place(view);
    for (std::size_t i = 0; i < picture.marks.size(); ++i) {
        places.push_back(place(picture.marks[i].at));
        if (view.plot().contains(places.back()))
            seen.push_back(i);
    }
    if (seen.size() > mostGlyphs) {
        paintPoints(painter, picture, places, seen, view.plot());
        return;
    }
    for (const std::size_t i : seen)
        paintGlyph(painter, places[i], picture.marks[i].glyph, inkColor(picture.marks[i].ink), radius);
}

} // namespace klineage::ui
