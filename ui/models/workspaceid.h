// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QCryptographicHash>
#include <QDir>
#include <QString>

namespace klineage::ui {

/// What a workspace is called in the names of files that belong to it but are kept outside: 16 hex digits of its absolute path.
[[nodiscard]] inline QString workspaceId(const QString &root)
{
    const QByteArray path = QDir(root).absolutePath().toUtf8();
    return QString::fromLatin1(QCryptographicHash::hash(path, QCryptographicHash::Sha256).toHex().left(16));
}

} // namespace klineage::ui
