// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::lineage {

/// A lineage of one state, K00, to be begun from somebody's kernel.
struct NewLineage {
    std::string workload;
    std::string platform;   ///< "pocl"; that of the trial when there is one
    std::string name;       ///< empty: the lineage of its platform
    std::string title;      ///< empty: the workload's and platform's names
    std::string stateTitle; ///< empty: "as it was brought"
    std::string origin;     ///< where the kernel comes from, and its licence; may be empty
};

/// The folder's name that the lineage would get, "pocl-mine".
[[nodiscard]] std::string folderOf(const NewLineage &lineage);

/// Whether a lineage of that name can be begun beside those in workloadDirectory. Errors: InvalidInput; Conflict (there is such a lineage).
[[nodiscard]] Status checkName(const std::filesystem::path &workloadDirectory, const NewLineage &lineage);

/// A file of a lineage that is to be written.
struct LineageFile {
    std::string name; ///< in its folder, which has no folders
    std::string text;
};

/// Writes workloadDirectory/lineages/<folder> with lineage.toml, these files and, when there is one, a trial, whole or not at all, and
/// reads it back. Errors: InvalidInput; Conflict (there is such a lineage); Io; Cancelled.
[[nodiscard]] Result<Lineage> createLineage(const std::filesystem::path &workloadDirectory,
                                            const Lineage &lineage, const std::vector<LineageFile> &texts,
                                            const std::optional<gate::Trial> &trial = {},
                                            const std::stop_token &stop = {});

/// Writes workloadDirectory/lineages/<folder> with lineage.toml, K00 and, when there is one, its trial, whole or not at all, and reads
/// it back. The trial must be correct, of this workload and platform, and have measured this text. Errors: InvalidInput; Conflict
/// (there is such a lineage); Io.
[[nodiscard]] Result<Lineage> beginLineage(const std::filesystem::path &workloadDirectory,
                                           const NewLineage &lineage, std::string_view candidateText,
                                           const std::optional<gate::Trial> &trial);

} // namespace klineage::lineage
