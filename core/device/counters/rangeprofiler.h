// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/counters/metricsets.h"

#include <functional>
#include <string>
#include <vector>

struct CUctx_st;

namespace klineage::gate::counters {

/// What is profiled: the kernels of its launches in order, and how to run it once more and wait for it.
struct ProfiledRun {
    std::vector<std::string> kernels;
    std::function<Status(std::size_t pass)> run;
};

/// Runs it as often as the sets need and returns one metric a kernel. Each pass is a run of its own ("user replay"), so that memory is
/// neither saved nor put back and the caches are as the runs before left them, as in timing. The context is current. Unavailable: no
/// CUPTI, no permission, or a device that has no counters; InvalidInput: what run() said of the candidate.
[[nodiscard]] Result<std::vector<Metric>> readCounters(CUctx_st *context, int device,
                                                       const ProfiledRun &profiled,
                                                       const std::vector<std::string> &sets);

} // namespace klineage::gate::counters
