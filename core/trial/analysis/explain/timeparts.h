// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the time of a run went: parts that add up to all of it. Pure.
//
// A run is its kernels, by the times that the profiler saw, and what is between them. A kernel's time is that of multiprocessors without a
// warp (100 % − sm_active) and of those with warps; the latter is divided as the samples of the program counter found the warps. So the
// parts are an estimate: a warp that waits delays the run only where no other warp could work meanwhile.
#pragma once

#include "core/trial/trial.h"

#include <map>
#include <string>
#include <vector>

namespace klineage::gate {

/// From what the time can be divided, from coarse to fine.
enum class TimeSource { None, Activity, StallCounters, Samples };
[[nodiscard]] const char *toString(TimeSource source); ///< none activity stall_counters samples

struct TimePart {
    double share = 0;                      ///< of the run, 0 … 1
    std::map<std::string, double> reasons; ///< their shares of the run; empty where nothing has a reason
    std::map<std::string, double> kernels; ///< the same by kernel
};

struct TimeParts {
    std::map<std::string, TimePart>
        groups; ///< by TimeGroup::id; the shares add up to 1. Empty: nothing to divide by
    /// Share of the run of one sample of a kernel; only from samples.
    std::map<std::string, double> perSample;
};

/// The finest source that a trial kept for all of its kernels.
[[nodiscard]] TimeSource finestSource(const Trial &trial);
/// By a source that the trial has; a timed trial.
[[nodiscard]] TimeParts timeParts(const Trial &trial, TimeSource source);

} // namespace klineage::gate
