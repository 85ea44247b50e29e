// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/paintparts.h"

#include "ui/style/theme.h"

#include <QFontMetricsF>
#include <QPainter>

#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

namespace klineage::ui {

namespace {

constexpr std::size_t mostTexts =
    1500; ///< within the plot: of more, those of the least priority are not tried
constexpr double leastWidth = 26;
constexpr double leastLabelWidth = 30;  ///< of a column, for the labels of its marks
constexpr double widestHead = 46;       ///< that may reach over the column
constexpr std::size_t mostLabels = 260; ///< of marks that are seen: of more none is labelled
constexpr double twoLineWidth = 54;     ///< the same, for more than their first lines
constexpr double textGap = 3;           ///< pixels between texts side by side

struct TextLine {
    QString text;
    QFont font;
    QColor color;
    double width = 0;
    double height = 0;
    double ascent = 0;
};

struct TextBlock {
    std::vector<TextLine> lines;
    QSizeF size;
};

/// Words, and the parts of names that are joined by hyphens.
QStringList piecesOf(const QString &text)
{
    QStringList pieces;
    for (const QString &word : text.split(QLatin1Char(' '), Qt::SkipEmptyParts)) {
        qsizetype from = 0;
        for (qsizetype i = 1; i + 1 < word.size(); ++i) {
            if (word[i] == QLatin1Char('-') && word[i + 1].isLetter()) {
                pieces << word.mid(from, i + 1 - from);
                from = i + 1;
            }
        }
        pieces << word.mid(from);
    }
    return pieces;
}

constexpr QChar brokenHere(0x200b); ///< zero width: behind a part of a name that goes on without a hyphen

/// The last place of the first `most` letters behind which names are read in parts (mma.sync, row_max, tile/row); 0: there is none.
qsizetype jointOf(const QString &piece, qsizetype most)
{
    for (qsizetype i = most; i > 1; --i) {
        if (QStringLiteral("._/:").contains(piece[i - 1]))
            return i;
    }
    return 0;
}

/// Pieces that are wider than a line, in parts that are not.
QStringList narrowPieces(const QStringList &pieces, const QFontMetricsF &metrics, double width)
{
    constexpr qsizetype leastPart = 3;
    QStringList narrow;
    for (QString piece : pieces) {
        while (metrics.horizontalAdvance(piece) > width && piece.size() > 2 * leastPart) {
            qsizetype fits = piece.size() - leastPart;
            while (fits > leastPart && metrics.horizontalAdvance(piece.left(fits) + QLatin1Char('-')) > width)
                --fits;
            const qsizetype joint = jointOf(piece, fits);
            const QString part = piece.left(joint > 0 ? joint : fits);
            narrow << (joint > 0                         ? part + brokenHere
                       : part.endsWith(QLatin1Char('-')) ? part
                                                         : part + QLatin1Char('-'));
            piece.remove(0, part.size());
        }
        narrow << piece;
    }
    return narrow;
}

QString joined(const QString &line, const QString &piece)
{
    const bool goesOn = line.isEmpty() || line.endsWith(QLatin1Char('-')) || line.endsWith(brokenHere);
    return goesOn ? line + piece : line + QLatin1Char(' ') + piece;
}

/// Words in lines of that width; what does not fit into the last one is elided.
QStringList wrapped(const QString &text, const QFontMetricsF &metrics, double width, int mostLines)
{
    QStringList lines;
    QString line;
    const QStringList words = narrowPieces(piecesOf(text), metrics, width);
    for (qsizetype i = 0; i < words.size(); ++i) {
        const QString longer = joined(line, words[i]);
        if (line.isEmpty() || metrics.horizontalAdvance(longer) <= width) {
            line = longer;
            continue;
        }
        if (lines.size() + 1 == mostLines) {
            line = longer;
            for (const QString &word : words.mid(i + 1))
                line = joined(line, word);
            break;
        }
        lines << line;
        line = words[i];
    }
    lines << line;
    for (QString &each : lines)
        each = metrics.elidedText(each, Qt::ElideRight, width);
    return lines;
}

TextBlock layOutBlock(const PictureText &text, double width, const QFont &font)
{
    TextBlock block;
    double height = 0;
    double widest = 0;
    for (const TextRun &run : text.runs) {
        if (run.text.isEmpty() || (text.width > 0 && width < run.least))
            continue;
        const QFont own = weightedFont(font, run.weight);
        const QFontMetricsF metrics(own);
        // A number that is cut says something else.
        if (block.lines.empty() && text.width > 0 && metrics.horizontalAdvance(run.text) > width)
            return {};
        const QStringList lines =
            text.width > 0 ? wrapped(run.text, metrics, width, run.mostLines) : QStringList{run.text};
        for (const QString &line : lines) {
            const double wide = metrics.horizontalAdvance(line);
            block.lines.push_back({line, own, inkColor(run.ink), wide, metrics.height(), metrics.ascent()});
            widest = std::max(widest, wide);
            height += metrics.height();
        }
    }
    block.size = {widest, height};
    return block;
}

QRectF placeBeside(const QPointF &point, const QSizeF &size, Qt::Alignment side, double gap)
{
    QPointF topLeft(point.x() - size.width() / 2, point.y() - size.height() / 2);
    if (side & Qt::AlignLeft)
        topLeft.setX(point.x() - gap - size.width());
    else if (side & Qt::AlignRight)
        topLeft.setX(point.x() + gap);
    if (side & Qt::AlignTop)
        topLeft.setY(point.y() - gap - size.height());
    else if (side & Qt::AlignBottom)
        topLeft.setY(point.y() + gap);
    return {topLeft, size};
}

void takeText(TextPlaces &places, const QRectF &place)
{
    places.take(place.adjusted(-textGap, 0, textGap, 0));
}

/// Where marks are that texts may stand on.
TextPlaces yieldingPlaces(const Picture &picture, const PictureView &view, double radius)
{
    constexpr std::size_t mostTaken = 4000;
    TextPlaces places(view.plot().adjusted(-2, -2, 2, 2));
    std::size_t taken = 0;
    for (const PictureMark &mark : picture.marks) {
        if (!mark.yields)
            continue;
        const QPointF at = view.toPixels(mark.at);
        if (view.plot().contains(at) && ++taken <= mostTaken)
            places.take({at.x() - radius, at.y() - radius, 2 * radius, 2 * radius});
    }
    return places;
}

/// The first side that is free, for a figure of a line rather one where it stands on no mark; none: empty.
std::optional<std::pair<QRectF, Qt::Alignment>> freePlace(const PictureText &text, const QPointF &point,
                                                          const QSizeF &size, const TextPlaces &places,
                                                          const TextPlaces &yielding)
{
    std::optional<std::pair<QRectF, Qt::Alignment>> found;
    for (const Qt::Alignment side : text.sides) {
        const QRectF place = placeBeside(point, size, side, text.gap);
        if (!places.isFree(place))
            continue;
        if (text.width > 0 || yielding.isFree(place))
            return std::pair(place, side);
        if (!found)
            found.emplace(place, side);
    }
    return found;
}

/// Lines stand against the point where they are beside it, else in its middle.
void paintBlock(QPainter &painter, const TextBlock &block, const QRectF &place, Qt::Alignment side)
{
    // Lines below a text are seen through, and do not strike it out.
    QColor ground = Theme::current().panel;
    ground.setAlphaF(0.8F);
    painter.fillRect(place, ground);
    double y = place.top();
    for (const TextLine &line : block.lines) {
        const double x = side & Qt::AlignRight  ? place.left()
                         : side & Qt::AlignLeft ? place.right() - line.width
                                                : place.center().x() - line.width / 2;
        painter.setFont(line.font);
        painter.setPen(line.color);
        painter.drawText(QPointF(x, y + line.ascent), line.text);
        y += line.height;
    }
}

/// A mark's own label above it, as far as its column is wide.
void paintLabel(QPainter &painter, const QString &label, const QPointF &at, double width, const QFont &font,
                TextPlaces &places)
{
    const QStringList lines = label.split(QLatin1Char('\n'));
    PictureText text;
    text.width = 1;
    for (const QString &line : lines) {
        const bool isFirst = text.runs.empty();
        text.runs.push_back({line,
                             {isFirst ? Ink::Role::Text : Ink::Role::Dim},
                             isFirst ? TextRun::Weight::Strong : TextRun::Weight::Small,
                             1,
                             isFirst ? 0 : twoLineWidth});
    }
    const double head =
        QFontMetricsF(weightedFont(font, TextRun::Weight::Strong)).horizontalAdvance(lines.front());
    const TextBlock block = layOutBlock(text, std::max(width, std::min(head + 1, widestHead)), font);
    for (const Qt::Alignment side : {Qt::AlignTop, Qt::AlignBottom}) {
        const QRectF place = placeBeside(at, block.size, side, markRadius(font) + 1);
        if (!places.isFree(place))
            continue;
        takeText(places, place);
        paintBlock(painter, block, place, side);
        return;
    }
}

void paintLabels(QPainter &painter, const Picture &picture, const PictureView &view, const QFont &font,
                 TextPlaces &places)
{
    if (view.xScale() < leastLabelWidth)
        return;
    std::vector<const PictureMark *> seen;
    for (const PictureMark &mark : picture.marks) {
        const QPointF at = view.toPixels(mark.at);
        if (mark.item >= 0 && view.plot().contains(at))
            seen.push_back(&mark);
    }
    if (seen.size() > mostLabels)
        return;
    for (const PictureMark *mark : seen)
        paintLabel(painter, picture.items[static_cast<std::size_t>(mark->item)].label,
                   view.toPixels(mark->at), view.xScale() * 0.97, font, places);
}

} // namespace

QFont weightedFont(const QFont &font, TextRun::Weight weight)
{
    QFont own = font;
    if (weight == TextRun::Weight::Strong)
        own.setWeight(QFont::DemiBold);
    if (weight == TextRun::Weight::Small && own.pointSizeF() > 0)
        own.setPointSizeF(own.pointSizeF() * 0.9);
    return own;
}

void paintTexts(QPainter &painter, const Picture &picture, const PictureView &view, const QFont &font,
                TextPlaces &places)
{
    std::vector<std::size_t> order;
    const QRectF near = view.plot().adjusted(-40, -40, 40, 40);
    for (std::size_t i = 0; i < picture.texts.size(); ++i) {
        const PictureText &text = picture.texts[i];
        if (text.width > 0 && text.width * view.xScale() < leastWidth)
            continue;
        if (near.contains(view.toPixels(text.at)))
            order.push_back(i);
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return picture.texts[a].priority > picture.texts[b].priority;
    });
    if (order.size() > mostTexts)
        order.resize(mostTexts);
    std::vector<bool> isPlaced(picture.texts.size(), false);
    const TextPlaces yielding = yieldingPlaces(picture, view, markRadius(font));
    for (const std::size_t i : order) {
        const PictureText &text = picture.texts[i];
        if (text.unless >= 0 && isPlaced[static_cast<std::size_t>(text.unless)]) {
            isPlaced[i] = true; // what would stand instead of this one need not either
            continue;
        }
        const TextBlock block = layOutBlock(text, text.width * view.xScale(), font);
        if (block.lines.empty())
            continue;
        const auto found = freePlace(text, view.toPixels(text.at), block.size, places, yielding);
        if (!found)
            continue;
        takeText(places, found->first);
        paintBlock(painter, block, found->first, found->second);
        isPlaced[i] = true;
    }
    if (picture.areLabelled)
        paintLabels(painter, picture, view, font, places);
}

} // namespace klineage::ui
