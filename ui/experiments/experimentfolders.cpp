// SPDX-License-Identifier: GPL-3.0-or-later
#include "ui/experiments/experimentfolders.h"

#include "ui/models/workspaceid.h"

#include <QSettings>
#include <QStandardPaths>

#include <algorithm>

namespace klineage::ui {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t mostExperiments = 1000;

QString openedFile()
{
    return QStandardPaths::writableLocation(QStandardPaths::GenericConfigLocation)
           + QStringLiteral("/klineage/experiments.ini");
}

} // namespace

QStringList openedExperiments(const QString &workspaceRoot)
{
    return QSettings(openedFile(), QSettings::IniFormat).value(workspaceId(workspaceRoot)).toStringList();
}

void setOpenedExperiments(const QString &workspaceRoot, const QStringList &folders)
{
    QSettings(openedFile(), QSettings::IniFormat).setValue(workspaceId(workspaceRoot), folders);
}

std::vector<fs::path> experimentPlaces(const QString &workspaceRoot)
{
    std::vector<fs::path> places{fs::path(workspaceRoot.toStdString()) / "experiments"};
    std::error_code ignored;
    for (const QString &folder : openedExperiments(workspaceRoot)) {
        if (fs::is_directory(folder.toStdString(), ignored))
            places.emplace_back(folder.toStdString());
    }
    return places;
}

std::vector<fs::path> experimentFolders(const fs::path &place)
{
    std::error_code ignored;
    if (fs::is_regular_file(place / "experiment.toml", ignored))
        return {place};
    std::vector<fs::path> folders;
    for (fs::directory_iterator it(place, ignored), end; it != end && folders.size() < mostExperiments;
         it.increment(ignored)) {
        if (fs::is_regular_file(it->path() / "experiment.toml", ignored))
            folders.push_back(it->path());
    }
    std::sort(folders.begin(), folders.end());
    return folders;
}

} // namespace klineage::ui
