// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/overviewmap.h"

#include "ui/story/picture/paintparts.h"
#include "ui/story/picture/picturecanvas.h"
#include "ui/style/theme.h"

#include <QMouseEvent>
#include <QPainter>
#include <QWheelEvent>

namespace klineage::ui {

namespace {

constexpr double mapRadius = 1.8;

} // namespace

OverviewMap::OverviewMap(PictureCanvas *canvas)
    : QWidget(canvas)
    , m_canvas(canvas)
{
    setObjectName(QStringLiteral("overviewMap"));
    setAccessibleName(tr("Overview map"));
    setProperty("notExported", true);
    setCursor(Qt::PointingHandCursor);
    setToolTip(tr("All of it, and what is seen of it: press to go there"));
}

QRectF OverviewMap::room() const
{
    return QRectF(rect()).adjusted(4, 4, -4, -4);
}

void OverviewMap::forgetPicture()
{
    m_drawn = QPixmap();
    update();
}

QPointF OverviewMap::toMap(const QPointF &unit) const
{
    PictureView all;
    all.fit(m_canvas->picture().world, room());
    return all.toPixels(unit);
}

void OverviewMap::drawPicture()
{
    const Picture &picture = m_canvas->picture();
    m_drawn = QPixmap(size() * devicePixelRatioF());
    m_drawn.setDevicePixelRatio(devicePixelRatioF());
    m_drawn.fill(Qt::transparent);
    PictureView all;
    all.fit(picture.world, room());
    QPainter painter(&m_drawn);
    painter.setRenderHint(QPainter::Antialiasing);
    for (const PictureBar &bar : picture.bars)
        painter.fillRect(all.toPixels(bar.area).intersected(room()), inkColor(bar.ink));
    for (const PictureLine &line : picture.lines) {
        painter.setPen(QPen(inkColor(line.ink), 1));
        for (std::size_t i = 1; i < line.points.size(); ++i)
            painter.drawLine(all.toPixels(line.points[i - 1]), all.toPixels(line.points[i]));
    }
    paintEdges(painter, picture, all);
    paintMarks(painter, picture, all, mapRadius);
}

void OverviewMap::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    if (m_drawn.isNull())
        drawPicture();
    QPainter painter(this);
    painter.setPen(QPen(theme.border, 1));
    painter.setBrush(blend(theme.raised, theme.panel, 0.9));
    painter.drawRect(rect().adjusted(0, 0, -1, -1));
    painter.drawPixmap(QPointF(), m_drawn);
    const QRectF seen = m_canvas->view().seen();
    const QRectF frame = QRectF(toMap(seen.topLeft()), toMap(seen.bottomRight())).normalized();
    painter.setPen(QPen(theme.accent, 1.5));
    painter.setBrush(Qt::NoBrush);
    painter.drawRect(frame.intersected(QRectF(rect()).adjusted(1, 1, -2, -2)));
}

void OverviewMap::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    forgetPicture();
}

void OverviewMap::go(const QPointF &position)
{
    PictureView all;
    all.fit(m_canvas->picture().world, room());
    m_canvas->centreOn(all.toUnits(position));
}

void OverviewMap::mousePressEvent(QMouseEvent *event)
{
    go(event->position());
}

void OverviewMap::mouseMoveEvent(QMouseEvent *event)
{
    if (event->buttons() & Qt::LeftButton)
        go(event->position());
}

void OverviewMap::wheelEvent(QWheelEvent *event)
{
    event->accept(); // what is below is far from what the cursor points at
}

} // namespace klineage::ui
