// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/importentry.h"

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace klineage::interop {

/// A program of a search, as its archive has it. Nothing of it is evidence here: it says what another system said.
struct ArchivedProgram {
    std::string id;
    std::string parent; ///< id; empty: it has none
    std::string code;
    std::string language; ///< as it is called there; may be empty
    std::optional<std::int64_t> generation;
    std::optional<std::int64_t> island;
    std::optional<double> score; ///< finite; more is better
    std::string scoreName;       ///< "combined_score"
    std::optional<bool> correct; ///< nothing: it is not stated there
    std::string verdict;         ///< "correct", "does not compile"; empty: it is not stated there
    std::vector<std::pair<std::string, double>> metrics{}; ///< besides the score
    std::string change{};                                  ///< what it changed, one line; may be empty
    std::string source{}; ///< where in the archive: "programs/a.json", "row 7"
    std::string
        leftOut{}; ///< why its text is not taken: "has no code"; it still stands between its parent and its children
};

/// What a search left behind, read as far as it can be.
struct Archive {
    std::string system; ///< "OpenEvolve"
    std::string word;   ///< "openevolve": what a lineage of it may be called
    std::string name;   ///< of the folder or file: "checkpoint_100"
    std::string best;   ///< id of the program that the archive calls its best; empty: none
    std::string sha256;
    std::string digestOf; ///< what has that sha-256: "the file", "sha256sum's lines of 12 files"
    std::string license;  ///< empty: it is not stated there
    std::vector<ArchivedProgram> programs; ///< in the order in which they were read
    std::vector<ImportEntry> skipped;      ///< files and rows that are no program
    std::vector<std::string> notes;
};

inline constexpr std::size_t maxArchiveFileBytes = std::size_t{16} << 20; ///< of one text file
inline constexpr std::size_t maxArchiveBytes = std::size_t{512} << 20;    ///< of all that is read of a folder
inline constexpr std::size_t maxDatabaseBytes = std::size_t{1} << 30;
inline constexpr std::size_t maxArchivedPrograms = 20'000;
inline constexpr std::size_t maxProgramIdBytes = 200;

} // namespace klineage::interop
