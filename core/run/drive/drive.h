// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/context.h"

namespace klineage::run {

/// Creates the run's folder unless it is there. The settings of one that is there must be the same (Conflict otherwise).
[[nodiscard]] Status ensureRun(const std::filesystem::path &runsDirectory, const Settings &settings);

/// Who answers and who judges while a run is driven. Nothing is owned.
struct Driver {
    std::filesystem::path workspace;
    llm::Provider &provider;
    const llm::PriceTable &prices;
    GateFunction gate;
    std::stop_token stop;
    Watcher watcher;
    int mostNewSteps = 0; ///< stop after so many steps that were not recorded yet; 0: do not
};

/// Goes on with the run in the folder, from its record and then beyond it, to its end. Holds the folder's lock meanwhile.
[[nodiscard]] Result<Ending> driveRun(const std::filesystem::path &runDirectory, const Driver &driver);

} // namespace klineage::run
