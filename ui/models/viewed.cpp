// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/viewed.h"

#include "ui/models/workspaceid.h"

#include <QDir>
#include <QFile>
#include <QFileInfo>
#include <QStandardPaths>

namespace klineage::ui {

namespace {

constexpr qint64 largestFile = 8 << 20;

} // namespace

QString Viewed::stepKey(const QString &lineage, const QString &row, const QString &trial)
{
    return QStringLiteral("step %1/%2 %3").arg(lineage, row, trial);
}

QString Viewed::cardKey(const QString &card, int revision)
{
    return QStringLiteral("card %1 %2").arg(card).arg(revision);
}

void Viewed::setWorkspace(const QString &root)
{
    m_file = QStandardPaths::writableLocation(QStandardPaths::AppLocalDataLocation)
             + QStringLiteral("/viewed/%1.txt").arg(workspaceId(root));
    m_keys.clear();
    if (QFile file(m_file); file.size() <= largestFile && file.open(QIODevice::ReadOnly)) {
        const QStringList lines =
            QString::fromUtf8(file.readAll()).split(QLatin1Char('\n'), Qt::SkipEmptyParts);
        m_keys = {lines.begin(), lines.end()};
    }
    emit changed();
}

bool Viewed::mark(const QStringList &keys)
{
    QByteArray lines;
    for (const QString &key : keys) {
        if (m_keys.contains(key))
            continue;
        m_keys.insert(key);
        lines += key.toUtf8() + '\n';
    }
    if (lines.isEmpty())
        return true;
    emit changed();
    if (m_file.isEmpty())
        return false;
    QDir().mkpath(QFileInfo(m_file).path());
    QFile file(m_file);
    return file.open(QIODevice::Append) && file.write(lines) == lines.size() && file.flush();
}

} // namespace klineage::ui
