// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/context.h"

#include <string>

namespace klineage::run {

/// What running a recorded run again came to.
struct ReplayCheck {
    int steps = 0;          ///< that came out the same, byte for byte but for their times
    int recorded = 0;       ///< steps in the record
    Ending ending;          ///< as it came out now
    std::string difference; ///< the first one, in words; empty: none
    [[nodiscard]] bool ok() const { return difference.empty(); }
};

/// Runs a recorded run again from its replies and trials alone, in a temporary copy without its steps and its ending: no provider
/// and no gate is asked, and a question or a candidate that has no answer in the record is a difference. Of a run
/// that was stopped, the steps that it came to. An Error only when the folder cannot be read or copied.
[[nodiscard]] Result<ReplayCheck> checkReplay(const std::filesystem::path &workspace,
                                              const std::filesystem::path &runDirectory,
                                              std::stop_token stop = {});

} // namespace klineage::run
