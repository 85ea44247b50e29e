// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <vector>

/// Internal to the workspace: where its parts lie. Sorted; without hidden folders; a missing folder has none.
namespace klineage {

[[nodiscard]] std::vector<std::filesystem::path> workloadFolders(const std::filesystem::path &root);
[[nodiscard]] std::vector<std::filesystem::path> lineageFolders(const std::filesystem::path &root);
[[nodiscard]] std::vector<std::filesystem::path> cardFolders(const std::filesystem::path &root);

} // namespace klineage
