// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>

#include <filesystem>
#include <vector>

namespace klineage::ui {

// Where experiments lie: in the workspace's experiments/, and in folders elsewhere that a person opened with the workspace, which are
// remembered for it.

[[nodiscard]] QStringList openedExperiments(const QString &workspaceRoot);
void setOpenedExperiments(const QString &workspaceRoot, const QStringList &folders);

/// experiments/ of the workspace, then what was opened with it and is still there.
[[nodiscard]] std::vector<std::filesystem::path> experimentPlaces(const QString &workspaceRoot);

/// The place itself where it is the folder of an experiment, else the folders in it that are, by name. Any thread.
[[nodiscard]] std::vector<std::filesystem::path> experimentFolders(const std::filesystem::path &place);

} // namespace klineage::ui
