// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/style/choosefile.h"

#include <QDir>
#include <QFileDialog>
#include <QFileInfo>
#include <QLibraryInfo>
#include <QRegularExpression>
#include <QStandardPaths>

#include <algorithm>

namespace klineage::ui {

namespace {

/// The kind and the folder that were chosen last, for as long as the program runs.
struct LastSave {
    QString suffix = QStringLiteral("png");
    QString folder;
};
LastSave &lastSave()
{
    static LastSave last;
    return last;
}

/// "png" of "PNG picture (*.png)".
QString suffixOf(const QString &filter)
{
    static const QRegularExpression pattern(QStringLiteral("\\*\\.(\\w+)"));
    return pattern.match(filter).captured(1);
}

} // namespace

QString chooseFileToSave(QWidget *parent, const QString &title, const QString &name, const QString &filters)
{
    LastSave &last = lastSave();
    const QStringList kinds = filters.split(QStringLiteral(";;"));
    const auto ofSuffix = [&kinds](const QString &suffix) {
        const auto found = std::find_if(kinds.begin(), kinds.end(),
                                        [&](const QString &kind) { return suffixOf(kind) == suffix; });
        return found == kinds.end() ? kinds.front() : *found;
    };
    const QString first = ofSuffix(last.suffix);
    QFileDialog dialog(parent, title, last.folder, filters);
    dialog.setAcceptMode(QFileDialog::AcceptSave);
    dialog.selectNameFilter(first);
    dialog.setDefaultSuffix(suffixOf(first));
    dialog.selectFile(name + QLatin1Char('.') + suffixOf(first));
    // Another kind is another ending; a name that was typed with one keeps it.
    QObject::connect(&dialog, &QFileDialog::filterSelected, &dialog, [&dialog](const QString &filter) {
        dialog.setDefaultSuffix(suffixOf(filter));
        const QFileInfo chosen(dialog.selectedFiles().value(0));
        dialog.selectFile(chosen.completeBaseName() + QLatin1Char('.') + suffixOf(filter));
    });
    if (dialog.exec() != QDialog::Accepted)
        return {};
    const QString fileName = dialog.selectedFiles().value(0);
    const QFileInfo file(fileName);
    last.suffix = file.suffix().toLower();
    last.folder = file.absolutePath();
    return fileName;
}

QString chooseFileToOpen(QWidget *parent, const QString &title, const QString &start, const QString &filters)
{
    return QFileDialog::getOpenFileName(parent, title, start, filters);
}

QString chooseFolder(QWidget *parent, const QString &title, const QString &start)
{
    return QFileDialog::getExistingDirectory(parent, title, start);
}

void preferPortal()
{
    constexpr const char *variable = "QT_QPA_PLATFORMTHEME";
    if (qgetenv("QT_QPA_PLATFORM") == "offscreen" || !qEnvironmentVariableIsEmpty(variable)
        || qEnvironmentVariableIsEmpty("DBUS_SESSION_BUS_ADDRESS"))
        return;
    // A dialog that is asked for where nobody answers would never open.
    const QString service =
        QStandardPaths::locate(QStandardPaths::GenericDataLocation,
                               QStringLiteral("dbus-1/services/org.freedesktop.portal.Desktop.service"));
    const QString theme = QLibraryInfo::path(QLibraryInfo::PluginsPath)
                          + QStringLiteral("/platformthemes/libqxdgdesktopportal.so");
    if (!service.isEmpty() && QFileInfo::exists(theme))
        qputenv(variable, "xdgdesktopportal");
}

} // namespace klineage::ui
