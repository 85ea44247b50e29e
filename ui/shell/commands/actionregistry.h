// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/style/keyscope.h"

#include <QKeySequence>
#include <QObject>
#include <QString>

#include <vector>

class QSettings;
class QWidget;

namespace klineage::ui {

/// Every command of the window, from one place: the palette and the list of keys show it, and keys are remapped in it.
/// Actions are owned by whoever made them and may go away at any time.
class ActionRegistry : public QObject
{
    Q_OBJECT

public:
    struct Entry {
        QAction *action = nullptr; ///< objectName is the id: "lineage.nextStep"
        QString group;             ///< "Lineage"
        QKeySequence defaultKey;
        QList<QKeySequence> defaultKeys; ///< with those that it has besides

        [[nodiscard]] QString id() const { return action->objectName(); }
        [[nodiscard]] bool isWindowWide() const
        {
            return action->shortcutContext() != Qt::WidgetWithChildrenShortcut;
        }
        /// Acts in the list, graph or diff of every panel that follows the selection (style/keyscope.h).
        [[nodiscard]] bool isPaneWide() const { return actsInAllPanes(action); }
    };

    using QObject::QObject;

    /// Takes the action with its present key as the default one. Its objectName must be unique and not empty.
    void add(QAction *action, const QString &group);
    /// All actions of a panel and its children that have an object name with a dot and a text.
    void addFrom(QWidget *panel, const QString &group);

    [[nodiscard]] const std::vector<Entry> &entries() const { return m_entries; }
    [[nodiscard]] const Entry *find(const QString &id) const;

    /// Changes a key; an empty one leaves the command without.
    void setKey(const QString &id, const QKeySequence &key);
    void resetKeys();
    /// Commands that already listen to the key where this one does: window-wide and pane-wide ones, and those of the same panel.
    [[nodiscard]] QStringList conflicts(const QString &id, const QKeySequence &key) const;

    /// Only keys that differ from the default are written.
    void save(QSettings &settings) const;
    void restore(QSettings &settings);

signals:
    void keysChanged();

private:
    [[nodiscard]] Entry *find(const QString &id);

    std::vector<Entry> m_entries;
};

} // namespace klineage::ui
