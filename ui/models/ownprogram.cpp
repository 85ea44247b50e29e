// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/models/ownprogram.h"

#include <QCoreApplication>
#include <QDir>
#include <QFileInfo>
#include <QStandardPaths>

namespace klineage::ui {

QString ownProgram(const QString &name)
{
    const QDir here(QCoreApplication::applicationDirPath());
    for (const QString &place : {name, QStringLiteral("../") + name}) {
        const QFileInfo program(here.filePath(place));
        if (program.isFile() && program.isExecutable())
            return program.canonicalFilePath();
    }
    return QStandardPaths::findExecutable(name);
}

} // namespace klineage::ui
