// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/tickmenu.h"

#include <QKeyEvent>
#include <QMouseEvent>

#include <utility>

namespace klineage::ui {

namespace {

bool isTicked(const QAction *action)
{
    return action && action->isCheckable() && action->isEnabled();
}

} // namespace

void TickMenu::mousePressEvent(QMouseEvent *event)
{
    m_isPressed = true;
    QMenu::mousePressEvent(event);
}

void TickMenu::mouseReleaseEvent(QMouseEvent *event)
{
    QAction *action = actionAt(event->position().toPoint());
    if (!std::exchange(m_isPressed, false) || !isTicked(action)) {
        QMenu::mouseReleaseEvent(event);
        return;
    }
    // QMenu has to see the release, and closes for every entry that can be chosen.
    action->setEnabled(false);
    QMenu::mouseReleaseEvent(event);
    action->setEnabled(true);
    action->trigger();
}

void TickMenu::keyPressEvent(QKeyEvent *event)
{
    const bool ticks =
        event->key() == Qt::Key_Space || event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
    if (ticks && isTicked(activeAction()))
        activeAction()->trigger();
    else
        QMenu::keyPressEvent(event);
}

} // namespace klineage::ui
