// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/interop/archives/archive.h"

#include <filesystem>
#include <map>
#include <stop_token>
#include <string_view>

namespace klineage::interop {

/// The archive that a path leads to:
///   - a checkpoint of OpenEvolve, or a folder that has some, of which the newest is taken;
///   - an SQLite file of ShinkaEvolve, or a folder with exactly one;
///   - a folder of AdaExplore's, with step_N.py and step_N_log.json.
/// Links below the path are not followed. Errors: NotFound; InvalidInput, it is none of these or cannot be read; Unavailable, this build
/// cannot read SQLite files; Io; Cancelled.
[[nodiscard]] Result<Archive> readArchive(const std::filesystem::path &from, const std::stop_token &stop);

/// The folder checkpoint_N.
[[nodiscard]] Result<Archive> readOpenEvolve(const std::filesystem::path &folder,
                                             const std::stop_token &stop);
[[nodiscard]] Result<Archive> readAdaExplore(const std::filesystem::path &folder,
                                             const std::stop_token &stop);
/// The file is read and never written, and nothing that it says is run: a view, a trigger or a virtual table called programs is refused.
/// At most 30 s.
[[nodiscard]] Result<Archive> readShinka(const std::filesystem::path &file, const std::stop_token &stop);
/// Whether this build has SQLite.
[[nodiscard]] bool readsSqlite();
/// Whether the file begins as SQLite's do.
[[nodiscard]] bool isSqliteFile(const std::filesystem::path &file);

/// programs/ID.json of a checkpoint. Errors: InvalidInput.
[[nodiscard]] Result<ArchivedProgram> parseOpenEvolveProgram(std::string_view text, const std::string &where);

struct OpenEvolveMetadata {
    std::string best;
    std::map<std::string, std::int64_t> islands; ///< program -> island
};
[[nodiscard]] Result<OpenEvolveMetadata> parseOpenEvolveMetadata(std::string_view text,
                                                                 const std::string &where);

struct AdaExploreStep {
    ArchivedProgram program; ///< without its code
    std::string best;        ///< id of the best one so far; may be empty
};
/// step_N_log.json and step_N_metrics.json; metrics may be empty. Errors: InvalidInput.
[[nodiscard]] Result<AdaExploreStep> parseAdaExploreStep(std::string_view log, std::string_view metrics,
                                                         const std::string &where);

} // namespace klineage::interop
