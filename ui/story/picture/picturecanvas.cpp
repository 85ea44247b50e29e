// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/story/picture/picturecanvas.h"

#include "ui/story/picture/overviewmap.h"
#include "ui/style/theme.h"

#include <QAccessible>
#include <QAction>
#include <QApplication>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>
#include <QWheelEvent>

#include <algorithm>
#include <cmath>

namespace klineage::ui {

namespace {

constexpr double hitPixels = 13;
constexpr double zoomStep = 1.25;   // a key, and a notch of the wheel
constexpr double notch = 120;       // of QWheelEvent::angleDelta
constexpr double scrollPixels = 60; // a notch without Ctrl
constexpr int mapWidth = 168;
constexpr int mapHeight = 92;
constexpr int leastForMap = 3; // times the map in each direction

} // namespace

PictureCanvas::PictureCanvas(const QString &name, QWidget *parent)
    : QWidget(parent)
    , m_map(new OverviewMap(this))
{
    setFocusPolicy(Qt::StrongFocus);
    setMouseTracking(true);
    setBackgroundRole(QPalette::Base); // what texts stand on, in a report too
    setProperty("paper",
                QSize(1800, 1000)); // as large as it leaves the window: titles have room that a dock has not
    setAutoFillBackground(true);
    addCommand(name + QStringLiteral(".fit"), tr("Fit the picture"), Qt::Key_F, [this] { fit(); });
    addCommand(name + QStringLiteral(".zoomIn"), tr("Zoom into the picture"), Qt::Key_Plus,
               [this] { zoomBy(zoomStep); });
    addCommand(name + QStringLiteral(".zoomOut"), tr("Zoom out of the picture"), Qt::Key_Minus,
               [this] { zoomBy(1 / zoomStep); });
    m_map->hide();
}

void PictureCanvas::addCommand(const QString &id, const QString &text, const QKeySequence &key,
                               const std::function<void()> &act)
{
    auto *action = new QAction(text, this);
    action->setObjectName(id);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(action, &QAction::triggered, this, act);
    addAction(action);
}

void PictureCanvas::setPicture(Picture picture, bool keepView)
{
    const QString key =
        m_look.selected < 0 ? QString() : m_picture.items[static_cast<std::size_t>(m_look.selected)].key;
    const QString row =
        m_look.selected < 0 ? QString() : m_picture.items[static_cast<std::size_t>(m_look.selected)].row;
    m_picture = std::move(picture);
    m_look.selected = m_picture.itemOf(key, row);
    m_look.hovered = -1;
    m_look.caption.clear();
    setAccessibleName(m_picture.name);
    const bool keeps = keepView && !m_view.isFitted();
    const QRectF seen = m_view.seen();
    measure();
    m_view.fit(m_picture.world, plotOf(m_picture, m_look), m_picture.mostPixels);
    if (keeps && seen.width() > 0 && seen.width() < m_view.seen().width()) {
        m_view.zoomAt(m_view.plot().center(), m_view.seen().width() / seen.width());
        m_view.centreOn(seen.center());
    }
    describe();
    m_map->forgetPicture();
    placeMap();
    update();
}

void PictureCanvas::measure()
{
    m_look.size = size();
    m_look.font = font();
}

void PictureCanvas::select(const QString &key, const QString &row)
{
    const int item = m_picture.itemOf(key, row);
    if (item == m_look.selected)
        return;
    m_look.selected = item;
    if (item >= 0 && !m_view.isFitted())
        m_view.reveal(m_picture.placeOf(item));
    describe();
    update();
    m_map->update();
}

void PictureCanvas::hover(const QString &key, const QString &row)
{
    setHovered(m_picture.itemOf(key, row), false);
}

void PictureCanvas::setHovered(int item, bool tell)
{
    if (item == m_look.hovered)
        return;
    m_look.hovered = item;
    m_look.caption =
        item < 0 ? QString()
                 : m_picture.items[static_cast<std::size_t>(item)].caption.section(QLatin1Char('\n'), 0, 0);
    describe();
    update();
    if (!tell)
        return;
    if (item < 0)
        emit itemHovered({}, {});
    else
        emit itemHovered(m_picture.items[static_cast<std::size_t>(item)].key,
                         m_picture.items[static_cast<std::size_t>(item)].row);
}

/// For assistive technology: the picture in a line, and what is pointed at or selected.
void PictureCanvas::describe()
{
    const int item = m_look.hovered >= 0 ? m_look.hovered : m_look.selected;
    QString text = m_picture.message.isEmpty() ? m_picture.title : m_picture.message;
    if (item >= 0)
        text = m_picture.items[static_cast<std::size_t>(item)].caption + QStringLiteral("; ") + text;
    setAccessibleDescription(text);
}

void PictureCanvas::fit()
{
    m_view.fit(m_picture.world, plotOf(m_picture, m_look), m_picture.mostPixels);
    placeMap();
    update();
    emit viewChanged();
}

void PictureCanvas::zoomBy(double factor)
{
    // At what is selected, where it is seen: that is what one wants to see nearer.
    QPointF at = m_view.plot().center();
    if (m_look.selected >= 0 && m_view.plot().contains(pixelOf(m_look.selected)))
        at = pixelOf(m_look.selected);
    zoomAt(at, factor);
}

void PictureCanvas::zoomAt(const QPointF &pixel, double factor)
{
    m_view.zoomAt(pixel, factor);
    placeMap();
    update();
    emit viewChanged();
}

void PictureCanvas::centreOn(const QPointF &unit)
{
    m_view.centreOn(unit);
    update();
    m_map->update();
    emit viewChanged();
}

void PictureCanvas::placeMap()
{
    const bool show = !m_view.isFitted() && m_picture.message.isEmpty() && width() >= leastForMap * mapWidth
                      && height() >= leastForMap * mapHeight / 2;
    m_map->setVisible(show);
    if (!show)
        return;
    const QRectF plot = m_view.plot();
    m_map->setGeometry(static_cast<int>(plot.right()) - mapWidth - 4,
                       static_cast<int>(plot.bottom()) - mapHeight - 4, mapWidth, mapHeight);
    m_map->update();
}

int PictureCanvas::itemAt(const QPointF &position) const
{
    if (!m_view.plot().adjusted(-4, -4, 4, 4).contains(position))
        return -1;
    int nearest = -1;
    double least = hitPixels;
    for (const PictureMark &mark : m_picture.marks) {
        if (mark.item < 0)
            continue;
        const QPointF away = m_view.toPixels(mark.at) - position;
        const double distance = std::hypot(away.x(), away.y());
        if (distance < least) {
            least = distance;
            nearest = mark.item;
        }
    }
    if (nearest >= 0)
        return nearest;
    for (const PictureBar &bar : m_picture.bars) {
        if (bar.item >= 0 && m_view.toPixels(bar.area).adjusted(0, -3, 0, 3).contains(position))
            return bar.item;
    }
    return -1;
}

bool PictureCanvas::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip && m_look.hovered >= 0) {
        const auto *help = static_cast<QHelpEvent *>(event);
        QToolTip::showText(help->globalPos(),
                           m_picture.items[static_cast<std::size_t>(m_look.hovered)].caption, this);
        return true;
    }
    return QWidget::event(event);
}

void PictureCanvas::paintEvent(QPaintEvent *)
{
    QPainter painter(this);
    paintPicture(painter, m_picture, m_view, m_look);
}

void PictureCanvas::resizeEvent(QResizeEvent *event)
{
    QWidget::resizeEvent(event);
    measure();
    m_view.movePlot(plotOf(m_picture, m_look));
    placeMap();
}

void PictureCanvas::changeEvent(QEvent *event)
{
    QWidget::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        m_map->forgetPicture();
    if (event->type() != QEvent::PaletteChange && event->type() != QEvent::FontChange)
        return;
    measure();
    m_view.movePlot(plotOf(m_picture, m_look));
    placeMap();
    update();
}

void PictureCanvas::mousePressEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton)
        return;
    m_isPressed = true;
    m_isDragging = false;
    m_pressed = m_last = event->position();
}

void PictureCanvas::mouseMoveEvent(QMouseEvent *event)
{
    if (!m_isPressed) {
        setHovered(itemAt(event->position()), true);
        setCursor(m_look.hovered >= 0 ? Qt::PointingHandCursor : Qt::ArrowCursor);
        return;
    }
    if (!m_isDragging
        && (event->position() - m_pressed).manhattanLength() < QApplication::startDragDistance())
        return;
    m_isDragging = true;
    setCursor(Qt::ClosedHandCursor);
    m_view.panBy(event->position() - m_last);
    m_last = event->position();
    update();
    m_map->update();
    emit viewChanged();
}

void PictureCanvas::mouseReleaseEvent(QMouseEvent *event)
{
    if (event->button() != Qt::LeftButton || !m_isPressed)
        return;
    m_isPressed = false;
    setCursor(Qt::ArrowCursor);
    if (!m_isDragging) {
        choose(itemAt(event->position()));
        setHovered(itemAt(event->position()), true); // still, or in another picture by now
    }
    m_isDragging = false;
}

void PictureCanvas::mouseDoubleClickEvent(QMouseEvent *event)
{
    if (const int item = itemAt(event->position()); item >= 0)
        emit itemOpened(m_picture.items[static_cast<std::size_t>(item)].key,
                        m_picture.items[static_cast<std::size_t>(item)].row);
}

void PictureCanvas::wheelEvent(QWheelEvent *event)
{
    event->accept();
    const QPoint turned = event->angleDelta();
    if (event->modifiers() & Qt::ControlModifier) {
        zoomAt(event->position(), std::pow(zoomStep, turned.y() / notch));
        return;
    }
    QPointF by = QPointF(turned) / notch * scrollPixels;
    if (event->modifiers() & Qt::ShiftModifier)
        by = {by.y(), by.x()};
    m_view.panBy(by);
    update();
    m_map->update();
    emit viewChanged();
}

void PictureCanvas::choose(int item)
{
    if (item < 0)
        return;
    const PictureItem &chosen = m_picture.items[static_cast<std::size_t>(item)];
    if (chosen.key.isEmpty()) {
        m_look.selected = item; // nothing follows it, and yet the arrow keys go on from it
        describe();
        update();
        return;
    }
    // Copies: who is told may give the canvas another picture.
    const QString key = chosen.key;
    const QString row = chosen.row;
    select(key, row);
    emit itemChosen(key, row);
}

void PictureCanvas::walk(int by, bool toEnd)
{
    const std::vector<int> &order = m_picture.walk;
    if (order.empty())
        return;
    const auto at = std::find(order.begin(), order.end(), m_look.selected);
    std::ptrdiff_t place = at - order.begin();
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(order.size()) - 1;
    if (toEnd)
        place = by > 0 ? last : 0;
    else if (at == order.end())
        place = by > 0 ? 0 : last;
    else
        place = std::clamp<std::ptrdiff_t>(place + by, 0, last);
    choose(order[static_cast<std::size_t>(place)]);
    setHovered(m_look.selected, true);
}

void PictureCanvas::keyPressEvent(QKeyEvent *event)
{
    switch (event->key()) {
    case Qt::Key_Left:
    case Qt::Key_Up:
        walk(-1, false);
        return;
    case Qt::Key_Right:
    case Qt::Key_Down:
        walk(1, false);
        return;
    case Qt::Key_Home:
        walk(-1, true);
        return;
    case Qt::Key_End:
        walk(1, true);
        return;
    case Qt::Key_Return:
    case Qt::Key_Enter:
        if (m_look.selected >= 0)
            emit itemOpened(m_picture.items[static_cast<std::size_t>(m_look.selected)].key,
                            m_picture.items[static_cast<std::size_t>(m_look.selected)].row);
        return;
    default:
        QWidget::keyPressEvent(event);
    }
}

void PictureCanvas::leaveEvent(QEvent *event)
{
    QWidget::leaveEvent(event);
    setHovered(-1, true);
}

} // namespace klineage::ui
