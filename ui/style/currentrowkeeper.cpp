// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/currentrowkeeper.h"

#include <QAbstractItemView>
#include <QEvent>
#include <QScrollBar>
#include <QTimer>

namespace klineage::ui {

CurrentRowKeeper::CurrentRowKeeper(QAbstractItemView *view)
    : QObject(view)
    , m_view(view)
    , m_soon(new QTimer(this))
{
    m_soon->setSingleShot(true);
    m_soon->setInterval(0);
    connect(m_soon, &QTimer::timeout, this, [this] {
        const QModelIndex current = m_view->currentIndex();
        if (current.isValid() && current != m_left)
            m_view->scrollTo(current);
    });
    view->installEventFilter(this);
    view->viewport()->installEventFilter(this);
    // Of a wheel, a key or a drag, and before the bar has its new value; what the program does is none.
    connect(
        view->verticalScrollBar(), &QAbstractSlider::actionTriggered, this,
        [this] {
            m_left = isInView() ? QPersistentModelIndex() : QPersistentModelIndex(m_view->currentIndex());
        },
        Qt::QueuedConnection);
}

void CurrentRowKeeper::keepSoon()
{
    m_soon->start();
}

bool CurrentRowKeeper::isInView() const
{
    const QRect row = m_view->visualRect(m_view->currentIndex());
    return row.isValid() && row.bottom() >= 0 && row.top() < m_view->viewport()->height();
}

bool CurrentRowKeeper::eventFilter(QObject *watched, QEvent *event)
{
    const bool isOfView = watched == m_view;
    if (isOfView ? event->type() == QEvent::FontChange || event->type() == QEvent::Show
                 : event->type() == QEvent::Resize)
        keepSoon();
    return QObject::eventFilter(watched, event);
}

} // namespace klineage::ui
