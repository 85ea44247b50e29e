// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QObject>
#include <QSet>
#include <QString>
#include <QStringList>

namespace klineage::ui {

/// What this person has marked as viewed, a file for each workspace outside of it. A step counts with the trial that it was viewed with and
/// a card with its revision: what changed since is not viewed. GUI thread.
class Viewed : public QObject
{
    Q_OBJECT

public:
    using QObject::QObject;

    [[nodiscard]] static QString stepKey(const QString &lineage, const QString &row, const QString &trial);
    [[nodiscard]] static QString cardKey(const QString &card, int revision);

    /// Reads what was viewed of this workspace. A file that cannot be read counts as empty.
    void setWorkspace(const QString &root);
    [[nodiscard]] bool contains(const QString &key) const { return m_keys.contains(key); }
    /// Marks and keeps it; false when it could not be kept, for the session it holds all the same.
    bool mark(const QString &key) { return mark(QStringList{key}); }
    bool mark(const QStringList &keys);

signals:
    void changed();

private:
    QString m_file;
    QSet<QString> m_keys;
};

} // namespace klineage::ui
