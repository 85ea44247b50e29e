// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/growthwatcher.h"

#include <QFileInfo>

namespace klineage::ui {

namespace {

constexpr int settleMs = 120;
constexpr int aliveMs = 2000;

} // namespace

GrowthWatcher::GrowthWatcher(QObject *parent)
    : QObject(parent)
{
    m_soon.setSingleShot(true);
    m_soon.setInterval(settleMs);
    m_alive.setInterval(aliveMs);
    connect(&m_soon, &QTimer::timeout, this, &GrowthWatcher::grown);
    connect(&m_alive, &QTimer::timeout, this, &GrowthWatcher::grown);
    // The first change starts the clock, so that a file that grows all the time is still read.
    const auto soon = [this] {
        if (!m_soon.isActive())
            m_soon.start();
    };
    connect(&m_files, &QFileSystemWatcher::directoryChanged, this, soon);
    connect(&m_files, &QFileSystemWatcher::fileChanged, this, soon);
}

void GrowthWatcher::watch(const QStringList &paths, bool isAlive)
{
    const QStringList watched = m_files.files() + m_files.directories();
    QStringList gone;
    for (const QString &path : watched) {
        if (!paths.contains(path))
            gone << path;
    }
    QStringList fresh;
    for (const QString &path : paths) {
        if (!watched.contains(path) && QFileInfo::exists(path))
            fresh << path;
    }
    if (!gone.isEmpty())
        m_files.removePaths(gone);
    if (!fresh.isEmpty())
        m_files.addPaths(fresh);
    isAlive ? m_alive.start() : m_alive.stop();
}

} // namespace klineage::ui
