// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/segmentedswitch.h"

#include "ui/style/theme.h"

#include <QHelpEvent>
#include <QKeyEvent>
#include <QPainter>
#include <QToolTip>

namespace klineage::ui {

SegmentedSwitch::SegmentedSwitch(const QStringList &labels, Size size, QWidget *parent)
    : QWidget(parent)
    , m_labels(labels)
    , m_size(size)
{
    setSizePolicy(QSizePolicy::Fixed, QSizePolicy::Fixed);
    setFocusPolicy(Qt::TabFocus);
    setMouseTracking(true);
}

QFont SegmentedSwitch::segmentFont() const
{
    QFont result = font();
    if (m_size == Size::Small)
        result.setPointSizeF(result.pointSizeF() * 0.9);
    // Widths are those of the heavier weight, so that nothing moves when another one is taken.
    result.setWeight(QFont::Medium);
    return result;
}

QRect SegmentedSwitch::segmentRect(int index) const
{
    const QFontMetrics metrics(segmentFont());
    const int padding = m_size == Size::Small ? 8 : 13;
    int left = 2;
    for (int i = 0; i < m_labels.size(); ++i) {
        const int width = metrics.horizontalAdvance(m_labels[i]) + 2 * padding;
        if (i == index)
            return {left, 2, width, height() - 4};
        left += width;
    }
    return {left, 2, 0, height() - 4};
}

QSize SegmentedSwitch::sizeHint() const
{
    const QFontMetrics metrics(segmentFont());
    return {segmentRect(static_cast<int>(m_labels.size())).left() + 2,
            metrics.height() + (m_size == Size::Small ? 6 : 11)};
}

void SegmentedSwitch::setCurrentIndex(int index)
{
    if (index == m_current)
        return;
    m_current = index;
    setAccessibleDescription(m_labels.value(index));
    update();
    emit currentChanged(index);
}

void SegmentedSwitch::choose(int index)
{
    if (index < 0 || index >= m_labels.size())
        return;
    setCurrentIndex(index);
    emit chosen(index);
}

int SegmentedSwitch::segmentAt(const QPoint &position) const
{
    for (int i = 0; i < m_labels.size(); ++i) {
        if (segmentRect(i).contains(position))
            return i;
    }
    return -1;
}

bool SegmentedSwitch::event(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        auto *help = static_cast<QHelpEvent *>(event);
        QToolTip::showText(help->globalPos(), m_tips.value(segmentAt(help->pos())), this);
        return true;
    }
    return QWidget::event(event);
}

void SegmentedSwitch::paintEvent(QPaintEvent *)
{
    const Theme &theme = Theme::current();
    QPainter painter(this);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setFont(segmentFont());
    painter.setPen(QPen(hasFocus() ? theme.accent : theme.border, 1));
    painter.setBrush(theme.isDark ? theme.panel : theme.background);
    painter.drawRoundedRect(QRectF(rect()).adjusted(0.5, 0.5, -0.5, -0.5), 5, 5);
    for (int i = 0; i < m_labels.size(); ++i) {
        const QRect segment = segmentRect(i);
        if (i == m_current) {
            painter.setPen(QPen(theme.border, 1));
            painter.setBrush(theme.isDark ? blend(theme.text, theme.raised, 0.1) : theme.raised);
            painter.drawRoundedRect(QRectF(segment).adjusted(0.5, 0.5, -0.5, -0.5), 4, 4);
        }
        painter.setPen(i == m_current || i == m_hovered ? theme.text : theme.dim);
        painter.drawText(segment, Qt::AlignCenter, m_labels[i]);
    }
}

void SegmentedSwitch::mousePressEvent(QMouseEvent *event)
{
    if (event->button() == Qt::LeftButton)
        choose(segmentAt(event->pos()));
}

void SegmentedSwitch::mouseMoveEvent(QMouseEvent *event)
{
    const int hovered = segmentAt(event->pos());
    if (hovered == m_hovered)
        return;
    m_hovered = hovered;
    update();
}

void SegmentedSwitch::leaveEvent(QEvent *)
{
    m_hovered = -1;
    update();
}

void SegmentedSwitch::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Left && m_current > 0)
        choose(m_current - 1);
    else if (event->key() == Qt::Key_Right && m_current + 1 < m_labels.size())
        choose(m_current + 1);
    else
        QWidget::keyPressEvent(event);
}

} // namespace klineage::ui
