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
    bool isBroken = false; ///< within a word, or its end is left out
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

/// The last place of the first `most` letters behind which names are read in parts (mma.sync, row_max, tile/row, m64n256|k16); 0: there is
/// none.
qsizetype jointOf(const QString &piece, qsizetype most)
{
    for (qsizetype i = most; i > 1; --i) {
        if (QStringLiteral("._/:").contains(piece[i - 1])
            || (i > 2 && i < piece.size() && piece[i - 1].isDigit() && piece[i].isLetter()))
            return i;
    }
    return 0;
}

/// Where a word of `least` to `most` letters of it may end in a hyphen: between consonants, else behind a vowel, else where the line ends.
qsizetype syllableOf(const QString &word, qsizetype least, qsizetype most)
{
    const auto isVowel = [&word](qsizetype i) {
        return QStringLiteral("aeiouy").contains(word[i].toLower());
    };
    for (const bool afterVowel : {false, true}) {
        for (qsizetype i = most; i >= least; --i) {
            if (i + 1 < word.size() && !isVowel(i) && isVowel(i + 1) && isVowel(i - 1) == afterVowel
                && (afterVowel || (i > 1 && isVowel(i - 2))))
                return i;
        }
    }
    return most;
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
            const QString part = piece.left(joint > 0 ? joint : syllableOf(piece, leastPart, fits));
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

/// Whether lines of a text have a hyphen that it has not, or not all of it.
bool isBrokenIn(const QString &text, const QStringList &lines)
{
    QString whole = lines.join(QString());
    whole.remove(brokenHere).remove(QLatin1Char(' '));
    return whole != QString(text).remove(QLatin1Char(' '));
}

/// column: what says which runs are shown; a block may be wider.
TextBlock layOutBlock(const PictureText &text, double width, double column, const QFont &font)
{
    TextBlock block;
    double height = 0;
    double widest = 0;
    for (const TextRun &run : text.runs) {
        if (run.text.isEmpty() || (text.width > 0 && column < run.least))
            continue;
        const QFont own = weightedFont(font, run.weight);
        const QFontMetricsF metrics(own);
        // A number that is cut says something else.
        if (block.lines.empty() && text.width > 0 && metrics.horizontalAdvance(run.text) > width)
            return {};
        const QStringList lines =
            text.width > 0 ? wrapped(run.text, metrics, width, run.mostLines) : QStringList{run.text};
        block.isBroken = block.isBroken || (text.width > 0 && isBrokenIn(run.text, lines));
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

struct PlacedBlock {
    TextBlock block;
    QRectF place;
    Qt::Alignment side;
};

/// The first side that is free and where it stands on no mark, near the point or a mark's height from it; else the first that is free.
std::optional<PlacedBlock> freePlace(const PictureText &text, const TextBlock &block, const QPointF &point,
                                     const TextPlaces &places, const TextPlaces &yielding, double radius)
{
    std::optional<PlacedBlock> found;
    for (const double further : {0.0, 2 * radius + 2}) {
        for (const Qt::Alignment side : text.sides) {
            const QRectF place = placeBeside(point, block.size, side, text.gap + further);
            if (!places.isFree(place))
                continue;
            // A title at the left would stand above the step before.
            const bool isAstray = found && text.width > 0 && (side & Qt::AlignLeft);
            if (yielding.isFree(place) && !isAstray)
                return PlacedBlock{block, place, side};
            if (!found)
                found = PlacedBlock{block, place, side};
        }
    }
    return found;
}

/// Where words would be broken it may reach over its column, if that is free.
std::optional<PlacedBlock> placedBlock(const PictureText &text, double width, const QFont &font,
                                       const QPointF &point, const TextPlaces &places,
                                       const TextPlaces &yielding, double radius)
{
    const TextBlock block = layOutBlock(text, width, width, font);
    if (block.lines.empty())
        return {};
    if (block.isBroken) {
        for (const double wider : {1.25, 1.5}) {
            const TextBlock whole = layOutBlock(text, wider * width, width, font);
            if (whole.isBroken)
                continue;
            if (auto placed = freePlace(text, whole, point, places, yielding, radius))
                return placed;
        }
    }
    return freePlace(text, block, point, places, yielding, radius);
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
    const double wide = std::max(width, std::min(head + 1, widestHead));
    const TextBlock block = layOutBlock(text, wide, wide, font);
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
    const double radius = markRadius(font);
    const TextPlaces yielding = yieldingPlaces(picture, view, radius);
    for (const std::size_t i : order) {
        const PictureText &text = picture.texts[i];
        if (text.unless >= 0 && isPlaced[static_cast<std::size_t>(text.unless)]) {
            isPlaced[i] = true; // what would stand instead of this one need not either
            continue;
        }
        const auto found = placedBlock(text, text.width * view.xScale(), font, view.toPixels(text.at), places,
                                       yielding, radius);
        if (!found)
            continue;
        takeText(places, found->place);
        paintBlock(painter, found->block, found->place, found->side);
        isPlaced[i] = true;
    }
    if (picture.areLabelled)
        paintLabels(painter, picture, view, font, places);
}

} // namespace klineage::ui
