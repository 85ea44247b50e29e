// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/gate/selftest/resampling.h"

namespace CLI {
class App;
}

/// `klineage-gate resample`: how often the rule that decides comparisons errs on noise that was recorded.
struct ResampleCommand {
    std::string library;
    std::string platform = "sm90";
    klineage::gate::ResampleOptions options;
    double quietest = 0; ///< only noise whose floor is below it; 0: all

    [[nodiscard]] CLI::App *add(CLI::App &app);
    [[nodiscard]] klineage::Status run() const;
};
