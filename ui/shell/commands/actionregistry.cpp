// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/shell/commands/actionregistry.h"

#include <QSettings>
#include <QWidget>

#include <algorithm>

namespace klineage::ui {

namespace {

/// Two views of one panel, or a page and the panes, listen to the same letter without ever meeting: the focus is in one of them.
bool listenInOnePlace(const QAction *a, const QAction *b)
{
    const QObjectList ofA = a->associatedObjects();
    const QObjectList ofB = b->associatedObjects();
    if (ofA.isEmpty() || ofB.isEmpty())
        return true;
    return std::any_of(ofA.begin(), ofA.end(), [&ofB](const QObject *x) {
        return std::any_of(ofB.begin(), ofB.end(), [x](const QObject *y) {
            const auto *left = qobject_cast<const QWidget *>(x);
            const auto *right = qobject_cast<const QWidget *>(y);
            return !left || !right || left == right || left->isAncestorOf(right) || right->isAncestorOf(left);
        });
    });
}

} // namespace

void ActionRegistry::add(QAction *action, const QString &group)
{
    Q_ASSERT(!action->objectName().isEmpty());
    if (find(action->objectName()))
        return;
    m_entries.push_back({action, group, action->shortcut(), action->shortcuts()});
    connect(action, &QObject::destroyed, this, [this, action] {
        m_entries.erase(std::remove_if(m_entries.begin(), m_entries.end(),
                                       [action](const Entry &e) { return e.action == action; }),
                        m_entries.end());
    });
}

void ActionRegistry::addFrom(QWidget *panel, const QString &group)
{
    const QList<QAction *> actions = panel->findChildren<QAction *>();
    for (QAction *action : actions) {
        if (action->objectName().contains(QLatin1Char('.')) && !action->text().isEmpty())
            add(action, group);
    }
}

ActionRegistry::Entry *ActionRegistry::find(const QString &id)
{
    const auto found = std::find_if(m_entries.begin(), m_entries.end(),
                                    [&id](const Entry &entry) { return entry.id() == id; });
    return found == m_entries.end() ? nullptr : &*found;
}

const ActionRegistry::Entry *ActionRegistry::find(const QString &id) const
{
    return const_cast<ActionRegistry *>(this)->find(id);
}

void ActionRegistry::setKey(const QString &id, const QKeySequence &key)
{
    Entry *entry = find(id);
    if (!entry || entry->action->shortcut() == key)
        return;
    entry->action->setShortcut(key);
    emit keysChanged();
}

void ActionRegistry::resetKeys()
{
    for (Entry &entry : m_entries)
        entry.action->setShortcuts(entry.defaultKeys);
    emit keysChanged();
}

QStringList ActionRegistry::conflicts(const QString &id, const QKeySequence &key) const
{
    QStringList ids;
    const Entry *own = find(id);
    if (!own || key.isEmpty())
        return ids;
    for (const Entry &other : m_entries) {
        if (&other == own || other.action->shortcut() != key)
            continue;
        if (isCounterpart(own->action, other.action) || isCounterpart(other.action, own->action))
            continue; // each where it is meant
        const bool isEverywhere = own->isWindowWide() || other.isWindowWide();
        // A command of a window that is not open yet listens nowhere.
        const bool isSomewhere =
            !own->action->associatedObjects().isEmpty() && !other.action->associatedObjects().isEmpty();
        const bool mayMeet =
            own->group == other.group || (isSomewhere && (own->isPaneWide() || other.isPaneWide()));
        if (isEverywhere || (mayMeet && listenInOnePlace(own->action, other.action)))
            ids << other.id();
    }
    return ids;
}

void ActionRegistry::save(QSettings &settings) const
{
    settings.beginGroup(QStringLiteral("keys"));
    settings.remove(QString());
    for (const Entry &entry : m_entries) {
        if (entry.action->shortcut() != entry.defaultKey)
            settings.setValue(entry.id(), entry.action->shortcut().toString(QKeySequence::PortableText));
    }
    settings.endGroup();
}

void ActionRegistry::restore(QSettings &settings)
{
    settings.beginGroup(QStringLiteral("keys"));
    for (Entry &entry : m_entries) {
        if (settings.contains(entry.id()))
            entry.action->setShortcut(
                QKeySequence::fromString(settings.value(entry.id()).toString(), QKeySequence::PortableText));
    }
    settings.endGroup();
    emit keysChanged();
}

} // namespace klineage::ui
