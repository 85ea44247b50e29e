// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/style/keyscope.h"

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

/// A tooltip that ends in the command's key, also after the key was changed.
inline void setKeyedToolTip(QWidget *widget, const QString &text, QAction *action)
{
    const auto show = [widget, text, action] { widget->setToolTip(textWithKey(text, action)); };
    QObject::connect(action, &QAction::changed, widget, show);
    show();
}

} // namespace klineage::ui
