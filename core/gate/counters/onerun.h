// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <nlohmann/json_fwd.hpp>

#include <filesystem>

namespace klineage::gate::counters {

struct OneRunOptions {
    std::filesystem::path workload;
    std::filesystem::path candidate;
    bool launchOnly = false; ///< the same launches, for another profiler to look at
};

/// Runs a candidate of one's own on the timed case in this process, unjudged: three runs over as many sets of buffers as the caches
/// cannot hold. With counters, what they read during the third: {"kernels": […], "metrics": […], "hotspots": […]}. This is how our
/// figures are held against those of Nsight Compute (tests/gate/ncu); nothing here is a verdict.
[[nodiscard]] Result<nlohmann::json> runOnce(const OneRunOptions &options);

} // namespace klineage::gate::counters
