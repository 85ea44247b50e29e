// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/picture/picture.h"
#include "ui/story/picture/pictureview.h"
#include "ui/story/picture/textplaces.h"

#include <QColor>
#include <QFont>
#include <QLineF>

#include <optional>

class QPainter;

namespace klineage::ui {

// The parts of paintPicture(). Nothing is painted outside of the plot, without clipping: what writes SVG does not know that.

[[nodiscard]] QColor inkColor(const Ink &ink);
[[nodiscard]] QFont weightedFont(const QFont &font, TextRun::Weight weight);
/// Half the size of a mark beside text of that font.
[[nodiscard]] double markRadius(const QFont &font);

void paintGlyph(QPainter &painter, const QPointF &centre, Glyph glyph, const QColor &color, double radius);

/// The part of a line that lies in a rectangle.
[[nodiscard]] std::optional<QLineF> clipped(QLineF line, const QRectF &room);

/// Edges and marks. Near, as curves and glyphs; where there are many, as thin lines and points, each pixel once.
void paintEdges(QPainter &painter, const Picture &picture, const PictureView &view);
void paintMarks(QPainter &painter, const Picture &picture, const PictureView &view, double radius);

/// Texts, greatest priority first, each where it finds a place.
void paintTexts(QPainter &painter, const Picture &picture, const PictureView &view, const QFont &font,
                TextPlaces &places);

} // namespace klineage::ui
