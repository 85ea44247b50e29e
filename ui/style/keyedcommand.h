// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QWidget>

namespace klineage::ui {

/// A command that acts while the focus is in a widget. Under its name the window lists it and remaps its key (ActionRegistry::addFrom), which a
/// QShortcut or a key that is looked for in keyPressEvent() is not.
inline QAction *addKeyedCommand(QWidget *widget, const QString &id, const QString &text,
                                const QKeySequence &key)
{
    auto *action = new QAction(text, widget);
    action->setObjectName(id);
    action->setShortcut(key);
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    widget->addAction(action);
    return action;
}

} // namespace klineage::ui
