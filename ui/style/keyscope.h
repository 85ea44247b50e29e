// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>
#include <QKeySequence>
#include <QWidget>

namespace klineage::ui {

/// A command whose key, a single letter, acts in the list, graph or diff of every panel that follows the selection, not only in that of its
/// own panel. The window puts it there. Where text is typed, letters stay letters.
inline void actInAllPanes(QAction *action)
{
    action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    action->setProperty("actsInAllPanes", true);
}

[[nodiscard]] inline bool actsInAllPanes(const QAction *action)
{
    return action->property("actsInAllPanes").toBool();
}

/// The same done to what a panel shows: "diff.comment" of "card.comment". In its panel the key is its own.
[[nodiscard]] inline bool isCounterpart(const QAction *paneWide, const QAction *own)
{
    return actsInAllPanes(paneWide) && !actsInAllPanes(own) && paneWide->shortcut() == own->shortcut()
           && own->shortcutContext() == Qt::WidgetWithChildrenShortcut
           && paneWide->objectName().section(u'.', 1) == own->objectName().section(u'.', 1);
}

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

/// "Approve (A)": what a command does, with its present key.
[[nodiscard]] inline QString textWithKey(const QString &text, const QAction *action)
{
    const QString key = action->shortcut().toString(QKeySequence::NativeText);
    return key.isEmpty() ? text : QStringLiteral("%1 (%2)").arg(text, key);
}

} // namespace klineage::ui
