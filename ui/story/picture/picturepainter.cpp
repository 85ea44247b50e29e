// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/picturepainter.h"

#include "ui/story/picture/axisticks.h"
#include "ui/story/picture/paintparts.h"
#include "ui/style/theme.h"

#include <QCoreApplication>
#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr double headMargin = 8;    // pixels around everything
constexpr double signWidth = 22;    // of a legend entry, before its text
constexpr double hatching = 6;      // pixels between the lines of a hollow bar
constexpr double widestNames = 0.2; // of the width, for names of guides at the right
constexpr double nameGap = 5;       // pixels between names of upright guides
constexpr double leastPlot = 5;     // lines of text high, before a row of the legend
constexpr double fewRows = 3;       // of the legend, which it may have of a low picture too
constexpr double mostLegend = 0.25; // of the height, for more rows than these

using Weight = TextRun::Weight;

bool hasX(const Picture &picture)
{
    return picture.x.kind != PictureAxis::Kind::None;
}

double lineHeight(const QFont &font)
{
    return QFontMetricsF(weightedFont(font, Weight::Small)).height();
}

/// The widest text that ticks of the axis may have.
double tickWidth(const PictureAxis &axis, const QFont &font)
{
    const QFontMetricsF metrics(weightedFont(font, Weight::Small));
    switch (axis.kind) {
    case PictureAxis::Kind::None:
        return 0;
    case PictureAxis::Kind::Latency:
        return metrics.horizontalAdvance(QStringLiteral("0.000 µs"));
    case PictureAxis::Kind::Ratio:
        return metrics.horizontalAdvance(QStringLiteral("0.0000×"));
    case PictureAxis::Kind::Linear:
        return metrics.horizontalAdvance(QStringLiteral("0.000") + axis.unit);
    case PictureAxis::Kind::Names: {
        double widest = 0;
        for (const PictureAxis::Name &name : axis.names)
            widest = std::max(widest, metrics.horizontalAdvance(name.text));
        return widest;
    }
    }
    return 0;
}

double guideNamesWidth(const Picture &picture, const PictureLook &look)
{
    const QFontMetricsF metrics(weightedFont(look.font, Weight::Small));
    double widest = 0;
    for (const PictureGuide &guide : picture.guides) {
        if (guide.orientation != Qt::Horizontal)
            continue;
        for (const QString &line : guide.name.split(QLatin1Char('\n')))
            widest = std::max(widest, metrics.horizontalAdvance(line));
    }
    return std::min(widest, look.size.width() * widestNames);
}

double bottomHeight(const Picture &picture, const QFont &font)
{
    if (!hasX(picture))
        return headMargin;
    const bool hasBelow = std::any_of(picture.x.names.begin(), picture.x.names.end(),
                                      [](const PictureAxis::Name &name) { return !name.below.isEmpty(); });
    const int lines = 1 + (hasBelow ? 1 : 0) + (picture.x.title.isEmpty() ? 0 : 1);
    return lines * lineHeight(font) + headMargin;
}

double titleHeight(const PictureLook &look)
{
    return QFontMetricsF(look.font).height() + headMargin * 0.75;
}

struct LegendLayout {
    std::vector<QRectF>
        places;        ///< of the entries, below the title; of those at the end that find no room none
    QString moreText;  ///< says how many others there are; empty: there are none
    QRectF more;       ///< where that stands
    double height = 0; ///< of all rows
};

/// The last entries make room for the text that says how many are left out.
void leaveOutRest(LegendLayout &layout, std::size_t entries, double x, double y, double right,
                  const QFontMetricsF &metrics)
{
    for (;;) {
        layout.moreText = QCoreApplication::translate("klineage::ui::Picture", "… and %1 more")
                              .arg(entries - layout.places.size());
        layout.more = {x, y, metrics.horizontalAdvance(layout.moreText) + 1, metrics.height()};
        if (layout.more.right() <= right || layout.places.empty() || layout.places.back().top() < y)
            return;
        x = layout.places.back().left();
        layout.places.pop_back();
    }
}

/// The axis' title is before the first entry. There is always one row, and more of them where the plot stays high enough.
LegendLayout layOutLegend(const Picture &picture, const PictureLook &look)
{
    const QFontMetricsF metrics(weightedFont(look.font, Weight::Small));
    const double height = metrics.height();
    const double right = look.size.width() - headMargin;
    const double room = look.size.height() - titleHeight(look) - bottomHeight(picture, look.font);
    const double rows = std::min(std::floor(room / height - leastPlot),
                                 std::max(fewRows, std::floor(mostLegend * room / height)));
    const double lastRow = std::max(0.0, rows - 1) * height;
    LegendLayout layout;
    double x =
        headMargin
        + (picture.y.title.isEmpty() ? 0 : metrics.horizontalAdvance(picture.y.title) + 3 * headMargin);
    double y = 0;
    for (const LegendEntry &entry : picture.legend) {
        const double width =
            std::min(signWidth + metrics.horizontalAdvance(entry.text) + 2 * headMargin, right - headMargin);
        if (x + width > right && x > headMargin) {
            if (y + height > lastRow + 0.5) {
                leaveOutRest(layout, picture.legend.size(), x, y, right, metrics);
                break;
            }
            x = headMargin;
            y += height;
        }
        layout.places.push_back({x, y, width, height});
        x += width;
    }
    layout.height = picture.legend.empty() && picture.y.title.isEmpty() ? 0 : y + height;
    return layout;
}

/// What is written around the plot: a text that would stand on another one, or be cut, is left out.
class TextsAround
{
public:
    explicit TextsAround(const QSizeF &size)
        : m_room(QRectF(QPointF(), size).adjusted(0, -1, 0, 1))
    {}
    [[nodiscard]] bool take(const QRectF &place)
    {
        // Lines may be as near as those of a paragraph.
        const QRectF core = place.adjusted(0, place.height() * 0.1, 0, -place.height() * 0.1);
        const auto touches = [&core](const QRectF &other) { return other.intersects(core); };
        if (!m_room.contains(core) || std::any_of(m_taken.begin(), m_taken.end(), touches))
            return false;
        m_taken.push_back(core);
        return true;
    }

private:
    QRectF m_room;
    std::vector<QRectF> m_taken;
};

void paintGrid(QPainter &painter, const std::vector<AxisTick> &ticks, const PictureView &view)
{
    painter.setRenderHint(QPainter::Antialiasing, false);
    painter.setPen(QPen(blend(Theme::current().border, Theme::current().panel, 0.6), 0));
    for (const AxisTick &tick : ticks) {
        const double y = view.toPixels(QPointF(0, tick.at)).y();
        painter.drawLine(QLineF(view.plot().left(), y, view.plot().right(), y));
    }
    painter.setRenderHint(QPainter::Antialiasing);
}

void paintYTicks(QPainter &painter, const std::vector<AxisTick> &ticks, const PictureView &view,
                 const PictureLook &look, TextsAround &around)
{
    const QFont font = weightedFont(look.font, Weight::Small);
    const QFontMetricsF metrics(font);
    painter.setFont(font);
    painter.setPen(Theme::current().dim);
    for (const AxisTick &tick : ticks) {
        const double width = metrics.horizontalAdvance(tick.text);
        const QPointF at(view.plot().left() - 5 - width,
                         view.toPixels(QPointF(0, tick.at)).y() + metrics.ascent() / 2 - 1.5);
        if (around.take({at.x(), at.y() - metrics.ascent(), width, metrics.height()}))
            painter.drawText(at, tick.text);
    }
}

/// Names may be many; each is shown where it does not touch the one before.
void paintXTicks(QPainter &painter, const std::vector<AxisTick> &ticks, const PictureView &view,
                 const Picture &picture, const PictureLook &look, TextsAround &around)
{
    const QFont font = weightedFont(look.font, Weight::Small);
    const QFontMetricsF metrics(font);
    const double top = view.plot().bottom() + 3;
    painter.setFont(font);
    if (!picture.x.title.isEmpty()) {
        const double width = metrics.horizontalAdvance(picture.x.title);
        const QPointF at(std::clamp(view.plot().center().x() - width / 2, 2.0,
                                    std::max(2.0, look.size.width() - width - 2)),
                         look.size.height() - metrics.descent() - 3);
        painter.setPen(Theme::current().dim);
        const double above = at.y() - metrics.ascent();
        // The names are more than what they are of.
        if (above >= top + metrics.height() - 1 && around.take({at.x(), above, width, metrics.height()}))
            painter.drawText(at, picture.x.title);
    }
    double free = -1e9;
    double freeBelow = -1e9;
    const auto put = [&](const QString &text, double x, double y, double &until) {
        const double width = metrics.horizontalAdvance(text);
        const double left = std::clamp(x - width / 2, 2.0, std::max(2.0, look.size.width() - width - 2));
        if (text.isEmpty() || left < until || !around.take({left, y, width, metrics.height()}))
            return;
        painter.drawText(QPointF(left, y + metrics.ascent()), text);
        until = left + width + 6;
    };
    for (const AxisTick &tick : ticks) {
        const double x = view.toPixels(QPointF(tick.at, 0)).x();
        painter.setPen(tick.below.isEmpty() ? Theme::current().dim : Theme::current().text);
        put(tick.text, x, top, free);
        painter.setPen(Theme::current().dim);
        put(tick.below, x, top + metrics.height(), freeBelow);
    }
}

/// In pixels, the least between two level guides that have names.
double guideDistance(const Picture &picture, const PictureView &view)
{
    std::vector<double> places;
    for (const PictureGuide &guide : picture.guides) {
        if (guide.orientation == Qt::Horizontal && !guide.name.isEmpty())
            places.push_back(view.toPixels(QPointF(0, guide.at)).y());
    }
    std::sort(places.begin(), places.end());
    double least = view.plot().height();
    for (std::size_t i = 1; i < places.size(); ++i)
        least = std::min(least, places[i] - places[i - 1]);
    return least;
}

/// Lines that are too long are broken between words, as long as there are no more lines than `most`; what is too long then is elided.
QStringList fittedLines(const QString &text, const QFontMetricsF &metrics, double width, int most)
{
    QStringList lines = text.split(QLatin1Char('\n'));
    for (qsizetype i = 0; i < lines.size() && lines.size() < most; ++i) {
        const QString line = lines[i];
        qsizetype end = line.size();
        while (end > 0 && metrics.horizontalAdvance(line.left(end)) > width)
            end = line.lastIndexOf(QLatin1Char(' '), end - 1);
        if (end <= 0 || end == line.size())
            continue;
        // Behind a comma rather than anywhere, where what is left fits into one line then.
        const qsizetype comma = line.lastIndexOf(QLatin1String(", "), end - 1);
        if (comma > 0 && metrics.horizontalAdvance(line.mid(comma + 2)) <= width)
            end = comma + 1;
        lines[i] = line.left(end);
        lines.insert(i + 1, line.mid(end + 1));
    }
    for (QString &line : lines)
        line = metrics.elidedText(line, Qt::ElideRight, width);
    return lines;
}

void paintLevelName(QPainter &painter, const QStringList &lines, const QPointF &at, TextsAround &around)
{
    const QFontMetricsF metrics(painter.font());
    double top = at.y() - static_cast<double>(lines.size()) / 2 * metrics.height();
    for (const QString &line : lines) {
        if (!line.isEmpty() && around.take({at.x(), top, metrics.horizontalAdvance(line), metrics.height()}))
            painter.drawText(QPointF(at.x(), top + metrics.ascent()), line);
        top += metrics.height();
    }
}

/// At the right of its guide, or at the left of it, or in one of the next rows: where it stands on no other name.
void paintUprightName(QPainter &painter, const QString &name, double x, const QRectF &plot, TextPlaces &names,
                      TextPlaces &places)
{
    const QFontMetricsF metrics(painter.font());
    const QSizeF size(metrics.horizontalAdvance(name), metrics.height());
    for (double top = plot.top(); top + size.height() <= plot.bottom(); top += size.height()) {
        for (const double left : {x + 4, x - 4 - size.width()}) {
            const QRectF place(QPointF(left, top), size);
            if (!names.isFree(place))
                continue;
            names.take(place.adjusted(-nameGap, 0, nameGap, 0));
            places.take(place);
            painter.drawText(place.topLeft() + QPointF(0, metrics.ascent()), name);
            return;
        }
    }
}

void paintGuides(QPainter &painter, const Picture &picture, const PictureView &view, const PictureLook &look,
                 TextsAround &around, TextPlaces &places)
{
    const QFont font = weightedFont(look.font, Weight::Small);
    const QFontMetricsF metrics(font);
    const double width = guideNamesWidth(picture, look) + 1;
    const int most = static_cast<int>(guideDistance(picture, view) / metrics.height());
    const QRectF plot = view.plot();
    TextPlaces names(plot.adjusted(-2, -2, 2, 2));
    for (const PictureGuide &guide : picture.guides) {
        const QPointF at = view.toPixels(QPointF(guide.at, guide.at));
        const bool isLevel = guide.orientation == Qt::Horizontal;
        if (isLevel ? at.y() < plot.top() || at.y() > plot.bottom()
                    : at.x() < plot.left() || at.x() > plot.right())
            continue;
        painter.setPen(QPen(inkColor(guide.ink), 0, guide.dash));
        painter.drawLine(isLevel ? QLineF(plot.left(), at.y(), plot.right(), at.y())
                                 : QLineF(at.x(), plot.top(), at.x(), plot.bottom()));
        painter.setFont(font);
        painter.setPen(inkColor(guide.ink));
        if (isLevel)
            paintLevelName(painter, fittedLines(guide.name, metrics, width, most), {plot.right() + 5, at.y()},
                           around);
        else if (!guide.name.isEmpty())
            paintUprightName(painter, guide.name, at.x(), plot, names, places);
    }
}

void paintHollow(QPainter &painter, const QRectF &area, const QColor &color)
{
    painter.setPen(QPen(color, 1));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(area.adjusted(0.5, 0.5, -0.5, -0.5));
    painter.setPen(QPen(blend(color, Theme::current().panel, 0.5), 0));
    for (double x = area.left() - area.height() + hatching; x < area.right(); x += hatching) {
        if (const auto line = clipped(QLineF(x, area.bottom(), x + area.height(), area.top()), area))
            painter.drawLine(*line);
    }
}

void paintBars(QPainter &painter, const Picture &picture, const PictureView &view, const PictureLook &look)
{
    for (const PictureBar &bar : picture.bars) {
        const QRectF area = view.toPixels(bar.area).intersected(view.plot());
        if (area.isEmpty() && !(area.width() > 0 || area.height() > 0))
            continue;
        const QColor color = inkColor(bar.ink);
        if (bar.hollow) {
            paintHollow(painter, area, color);
        } else {
            painter.setPen(Qt::NoPen);
            painter.setBrush(color);
            painter.drawRect(QRectF(area.topLeft(), area.size().expandedTo(QSizeF(1, 1))));
        }
        if (bar.item < 0 || (bar.item != look.selected && bar.item != look.hovered))
            continue;
        painter.setBrush(Qt::NoBrush);
        painter.setPen(QPen(bar.item == look.hovered ? Theme::current().warn : Theme::current().accent, 2));
        painter.drawRect(area.adjusted(-2, -2, 2, 2));
    }
}

void paintLines(QPainter &painter, const Picture &picture, const PictureView &view)
{
    for (const PictureLine &line : picture.lines) {
        painter.setPen(QPen(inkColor(line.ink), line.width, line.dash));
        for (std::size_t i = 1; i < line.points.size(); ++i) {
            const QPointF from = view.toPixels(line.points[i - 1]);
            const QPointF to = view.toPixels(line.points[i]);
            const QPointF turn = line.stepped ? QPointF(to.x(), from.y()) : to;
            if (const auto part = clipped({from, turn}, view.plot()))
                painter.drawLine(*part);
            if (const auto part = clipped({turn, to}, view.plot()); part && line.stepped)
                painter.drawLine(*part);
        }
    }
}

void paintRings(QPainter &painter, const Picture &picture, const PictureView &view, const PictureLook &look)
{
    painter.setBrush(Qt::NoBrush);
    for (const PictureMark &mark : picture.marks) {
        if (mark.item < 0 || (mark.item != look.selected && mark.item != look.hovered))
            continue;
        const QPointF at = view.toPixels(mark.at);
        if (!view.plot().contains(at))
            continue;
        const double radius = markRadius(look.font) + 4;
        if (mark.item == look.selected) {
            painter.setPen(QPen(Theme::current().accent, 2));
            painter.drawEllipse(at, radius, radius);
        }
        if (mark.item == look.hovered) {
            painter.setPen(QPen(Theme::current().warn, 2));
            painter.drawEllipse(at, radius + 1.5, radius + 1.5);
        }
    }
}

void paintSign(QPainter &painter, const LegendEntry &entry, const QRectF &place, const QFont &font)
{
    const double y = place.center().y();
    const QColor color = inkColor(entry.ink);
    switch (entry.sign) {
    case LegendEntry::Sign::Line:
        painter.setPen(QPen(color, 2, entry.dash));
        painter.drawLine(QLineF(place.left(), y, place.left() + signWidth - 6, y));
        break;
    case LegendEntry::Sign::Bar:
        painter.fillRect(QRectF(place.left() + 2, y - 4.5, 12, 9), color);
        break;
    case LegendEntry::Sign::HollowBar:
        paintHollow(painter, QRectF(place.left() + 2, y - 4.5, 12, 9), color);
        break;
    case LegendEntry::Sign::Mark:
        paintGlyph(painter, {place.left() + 8, y}, entry.glyph, color, markRadius(font) * 0.9);
        break;
    }
}

void paintHead(QPainter &painter, const Picture &picture, const PictureLook &look, TextsAround &around)
{
    const QFontMetricsF metrics(look.font);
    const double width = look.size.width() - 2 * headMargin;
    painter.setFont(look.font);
    painter.setPen(Theme::current().text);
    const QString caption = look.caption.isEmpty() ? picture.title : look.caption;
    if (around.take({headMargin, headMargin * 0.5, width, metrics.height()}))
        painter.drawText(QPointF(headMargin, headMargin * 0.5 + metrics.ascent()),
                         metrics.elidedText(caption, Qt::ElideRight, width));
    const QFont small = weightedFont(look.font, Weight::Small);
    const QFontMetricsF smallMetrics(small);
    const LegendLayout legend = layOutLegend(picture, look);
    const double top = titleHeight(look);
    const auto put = [&](const QString &text, const QRectF &place, const QColor &color) {
        const QString fitted = smallMetrics.elidedText(text, Qt::ElideRight, place.width());
        const double wide = smallMetrics.horizontalAdvance(fitted);
        if (text.isEmpty() || !around.take({place.left(), place.top(), wide, place.height()}))
            return;
        painter.setFont(small);
        painter.setPen(color);
        painter.drawText(QPointF(place.left(), place.top() + smallMetrics.ascent()), fitted);
    };
    put(picture.y.title, {headMargin, top, width, smallMetrics.height()}, Theme::current().dim);
    for (std::size_t i = 0; i < legend.places.size(); ++i) {
        const QRectF place = legend.places[i].translated(0, top);
        paintSign(painter, picture.legend[i], place, look.font);
        put(picture.legend[i].text, place.adjusted(signWidth, 0, -headMargin, 0), Theme::current().text);
    }
    if (!legend.moreText.isEmpty())
        put(legend.moreText, legend.more.translated(0, top), Theme::current().text);
}

void paintMessage(QPainter &painter, const Picture &picture, const PictureLook &look)
{
    painter.setFont(look.font);
    painter.setPen(Theme::current().dim);
    painter.drawText(QRectF(QPointF(), look.size).adjusted(16, 16, -16, -16),
                     Qt::AlignCenter | Qt::TextWordWrap, picture.message);
}

/// Texts keep off bars and, where these are glyphs, off marks.
void takePlaces(const Picture &picture, const PictureView &view, double radius, TextPlaces &places)
{
    constexpr std::size_t mostTaken = 4000;
    for (const PictureBar &bar : picture.bars)
        places.take(view.toPixels(bar.area).intersected(view.plot()));
    std::size_t taken = 0;
    for (const PictureMark &mark : picture.marks) {
        const QPointF at = view.toPixels(mark.at);
        if (mark.yields || !view.plot().contains(at))
            continue;
        if (++taken > mostTaken)
            return;
        places.take({at.x() - radius, at.y() - radius, 2 * radius, 2 * radius});
    }
}

} // namespace

QRectF plotOf(const Picture &picture, const PictureLook &look)
{
    const double left = picture.y.kind == PictureAxis::Kind::None
                            ? headMargin
                            : headMargin + tickWidth(picture.y, look.font) + 5;
    const double names = guideNamesWidth(picture, look);
    const double right = names > 0 ? names + headMargin + 5 : headMargin * 1.5;
    // Half of the uppermost tick's text stands above the plot.
    const double top =
        titleHeight(look) + layOutLegend(picture, look).height
        + (picture.y.kind == PictureAxis::Kind::None ? headMargin * 0.5 : lineHeight(look.font) * 0.5);
    const double bottom = bottomHeight(picture, look.font);
    const QRectF plot(left, top, look.size.width() - left - right, look.size.height() - top - bottom);
    return {plot.topLeft(), plot.size().expandedTo(QSizeF(10, 10))};
}

void paintPicture(QPainter &painter, const Picture &picture, const PictureView &view, const PictureLook &look)
{
    painter.save();
    painter.setRenderHint(QPainter::Antialiasing);
    if (!picture.message.isEmpty()) {
        paintMessage(painter, picture, look);
        painter.restore();
        return;
    }
    const QRectF plot = view.plot();
    const double low = std::max(view.seen().top(), picture.yFrom.value_or(view.seen().top()));
    const double axisPixels =
        plot.height() * std::max(0.0, view.seen().bottom() - low) / view.seen().height();
    const std::vector<AxisTick> ys =
        axisTicks(picture.y, low, view.seen().bottom(), axisPixels, lineHeight(look.font));
    const double from = std::max(view.seen().left(), picture.xFrom.value_or(view.seen().left()));
    const double xPixels = plot.width() * std::max(0.0, view.seen().right() - from) / view.seen().width();
    const std::vector<AxisTick> xs =
        axisTicks(picture.x, from, view.seen().right(), xPixels, tickWidth(picture.x, look.font));
    TextsAround around(look.size);
    TextPlaces places(plot.adjusted(-2, -2, 2, 2));
    paintHead(painter, picture, look, around);
    paintGrid(painter, ys, view);
    paintGuides(painter, picture, view, look, around, places);
    paintBars(painter, picture, view, look);
    paintLines(painter, picture, view);
    paintEdges(painter, picture, view);
    paintMarks(painter, picture, view, markRadius(look.font));
    paintRings(painter, picture, view, look);
    if (!picture.texts.empty() || picture.areLabelled) {
        takePlaces(picture, view, markRadius(look.font), places);
        paintTexts(painter, picture, view, look.font, places);
    }
    paintYTicks(painter, ys, view, look, around);
    paintXTicks(painter, xs, view, picture, look, around);
    painter.restore();
}

} // namespace klineage::ui
