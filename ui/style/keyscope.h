// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QAction>

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

/// "Approve (A)": what a command does, with its present key.
[[nodiscard]] inline QString textWithKey(const QString &text, const QAction *action)
{
    const QString key = action->shortcut().toString(QKeySequence::NativeText);
    return key.isEmpty() ? text : QStringLiteral("%1 (%2)").arg(text, key);
}

} // namespace klineage::ui
