// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/files/jsonlines.h"
#include "core/run/journal.h"

#include <cstddef>

/// Internal to the journal: the files of a run's folder and how they are read. Format: core/run/README.md, "Runs".
namespace klineage::run {

inline constexpr const char *settingsFile = "run.toml";
inline constexpr const char *endingFile = "ending.toml";
inline constexpr const char *stepsFile = "steps.jsonl";
inline constexpr const char *trialsFile = "trials.jsonl";
inline constexpr const char *lockFile = ".lock";

inline constexpr std::size_t maxSettingsBytes = std::size_t{1} << 20;
inline constexpr std::size_t maxKeptBytes = std::size_t{16} << 20;
inline constexpr std::size_t maxSteps = 100'000;

[[nodiscard]] Result<Settings> readSettings(const std::filesystem::path &directory);
/// Missing files are empty lists. Torn last lines become notices.
[[nodiscard]] Result<std::vector<StepRecord>> readSteps(const std::filesystem::path &directory,
                                                        std::vector<std::string> *notices);
[[nodiscard]] Result<std::vector<gate::Trial>> readTrials(const std::filesystem::path &directory,
                                                          std::vector<std::string> *notices);
/// Without a code when there is none.
[[nodiscard]] Result<Ending> readEnding(const std::filesystem::path &directory);
[[nodiscard]] Status writeEnding(const std::filesystem::path &directory, const Ending &ending);

} // namespace klineage::run
