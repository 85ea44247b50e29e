// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QFileSystemWatcher>
#include <QObject>
#include <QStringList>
#include <QTimer>

namespace klineage::ui {

/// Follows files and folders that other programs may write into, and tells of several changes at once. Lives on the GUI thread.
class GrowthWatcher : public QObject
{
    Q_OBJECT

public:
    explicit GrowthWatcher(QObject *parent = nullptr);

    /// These from now on, those that are there. isAlive: a process is at them; whether it still is can be seen from no file, so it is
    /// looked at from time to time too.
    void watch(const QStringList &paths, bool isAlive);

signals:
    void grown(); ///< time to read again

private:
    QFileSystemWatcher m_files;
    QTimer m_soon;
    QTimer m_alive;
};

} // namespace klineage::ui
