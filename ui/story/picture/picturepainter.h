// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/picture/picture.h"
#include "ui/story/picture/pictureview.h"

#include <QFont>

class QPainter;

namespace klineage::ui {

/// What a picture is painted with, beside what it says.
struct PictureLook {
    QSizeF size; ///< of the whole, in pixels
    QFont font;
    int selected = -1;
    int hovered = -1;
    QString caption; ///< instead of the title; empty: the title
};

/// Where the content stands, between axes, title and legend. Pure.
[[nodiscard]] QRectF plotOf(const Picture &picture, const PictureLook &look);

/// Paints with lines, areas and text alone, so that a vector file of it has no pixels in it. The view's plot is plotOf().
void paintPicture(QPainter &painter, const Picture &picture, const PictureView &view,
                  const PictureLook &look);

} // namespace klineage::ui
