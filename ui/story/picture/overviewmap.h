// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QPixmap>
#include <QWidget>

namespace klineage::ui {

class PictureCanvas;

/// All of a canvas' picture, small, with a frame around what is seen; a press or a drag in it goes there. It does not leave with exports.
class OverviewMap : public QWidget
{
    Q_OBJECT

public:
    explicit OverviewMap(PictureCanvas *canvas);

    void forgetPicture(); ///< the picture or its colours are others
    /// A point of the map for one of the picture.
    [[nodiscard]] QPointF toMap(const QPointF &unit) const;

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;

private:
    [[nodiscard]] QRectF room() const;
    void go(const QPointF &position);
    void drawPicture();

    PictureCanvas *m_canvas;
    QPixmap m_drawn; ///< without the frame; null: to be drawn
};

} // namespace klineage::ui
