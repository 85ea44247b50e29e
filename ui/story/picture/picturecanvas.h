// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/picture/picture.h"
#include "ui/story/picture/picturepainter.h"
#include "ui/story/picture/pictureview.h"

#include <QList>
#include <QWidget>

class QAction;

namespace klineage::ui {

class OverviewMap;

/// Shows a Picture: drag pans, Ctrl+wheel zooms at the cursor, the wheel scrolls, F fits, + and - zoom; the arrow keys walk through its items,
/// Return opens one. While a part is seen, a map of all of it stands in the corner. Its actions have object names.
class PictureCanvas : public QWidget
{
    Q_OBJECT

public:
    /// `name` begins the names of the actions: "story" gives "story.fit".
    explicit PictureCanvas(const QString &name, QWidget *parent = nullptr);

    /// keepView: what is seen stays, unless all of it was seen.
    void setPicture(Picture picture, bool keepView = false);
    [[nodiscard]] const Picture &picture() const { return m_picture; }
    [[nodiscard]] const PictureView &view() const { return m_view; }

    /// Rings; nothing is told. An item that is selected comes into view.
    void select(const QString &key, const QString &row);
    void hover(const QString &key, const QString &row);
    [[nodiscard]] int selected() const { return m_look.selected; }
    [[nodiscard]] int hovered() const { return m_look.hovered; }

    void fit();
    void zoomBy(double factor); ///< at the middle
    void zoomAt(const QPointF &pixel, double factor);
    void centreOn(const QPointF &unit);
    [[nodiscard]] OverviewMap *map() const { return m_map; }

    /// The item at a position of the canvas, -1: none.
    [[nodiscard]] int itemAt(const QPointF &position) const;
    /// Where an item is on the canvas.
    [[nodiscard]] QPointF pixelOf(int item) const { return m_view.toPixels(m_picture.placeOf(item)); }
    QSize sizeHint() const override { return {480, 260}; }
    QSize minimumSizeHint() const override { return {80, 60}; }

signals:
    void itemHovered(const QString &key, const QString &row); ///< empty: none
    void itemChosen(const QString &key, const QString &row);
    void itemOpened(const QString &key, const QString &row);
    void viewChanged();

protected:
    bool event(QEvent *event) override;
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void changeEvent(QEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void leaveEvent(QEvent *event) override;

private:
    void addCommand(const QString &id, const QString &text, const QKeySequence &key,
                    const std::function<void()> &act);
    void measure();
    void placeMap();
    void setHovered(int item, bool tell);
    void choose(int item);
    void walk(int by, bool toEnd);
    void describe();

    Picture m_picture;
    PictureView m_view;
    PictureLook m_look;
    OverviewMap *m_map;
    QPointF m_pressed;
    QPointF m_last;
    bool m_isPressed = false;
    bool m_isDragging = false;
};

} // namespace klineage::ui
