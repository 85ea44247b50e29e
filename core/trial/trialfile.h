// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <filesystem>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

struct TrialFile {
    std::vector<Trial> trials;        ///< in the file's order, no id twice
    std::vector<std::string> notices; ///< what was left out, and why
};

/// Reads a trials.jsonl; there are no trials where there is no such file. One that cannot be read is an error, a line that is no trial a
/// notice. stop: the rest is left out.
[[nodiscard]] Result<TrialFile> readTrialFile(const std::filesystem::path &path,
                                              const std::stop_token &stop = {});

} // namespace klineage::gate
