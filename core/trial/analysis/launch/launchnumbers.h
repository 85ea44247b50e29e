// SPDX-License-Identifier: GPL-3.0-or-later
//
// The launch plan of a trial in numbers, as they were recorded, and what limited how many blocks a multiprocessor held. Pure.
#pragma once

#include "core/kernel/plan.h"
#include "core/trial/analysis/launch/smlimits.h"
#include "core/trial/trial.h"

#include <array>
#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// One launch of a run, or several that are alike. What was not recorded is empty, never zero.
struct LaunchNumbers {
    std::string kernel;
    int count = 1; ///< launches like this one
    // Of the launch plan, evaluated for the timed case: only where it comes to the numbers that were recorded.
    std::optional<std::array<std::int64_t, 3>> grid;
    std::optional<std::array<std::int64_t, 3>> block;
    std::optional<std::array<std::int64_t, 3>> cluster; ///< where it is more than one block
    // Recorded. On OpenCL blocks are work-groups, and their shared memory is local memory.
    std::optional<double> blocks;
    std::optional<double> threads;       ///< of a block
    std::optional<double> registers;     ///< of a thread
    std::optional<double> staticShared;  ///< B of a block
    std::optional<double> dynamicShared; ///< B of a block
    std::optional<double> blocksPerSm;   ///< that can be resident, as the driver said
    std::optional<double> waves;
    std::optional<double> theoreticalOccupancy; ///< %
    std::optional<double> achievedOccupancy;    ///< %: needs counters
    std::optional<double> multiprocessors;      ///< compute units on OpenCL

    std::optional<BlockRoom> room;  ///< when its least is what the driver said
    std::vector<BlockLimit> limits; ///< of room
    std::string limitText; ///< one sentence: what limits the resident blocks, or why that is not known

    /// Blocks of the launch × threads of a block.
    [[nodiscard]] std::optional<double> threadsInAll() const;
};

/// In the order of the plan's launches, of each kernel alike ones together. plan: resolved for the timed case with the trial's tunables;
/// nullptr: not known.
[[nodiscard]] std::vector<LaunchNumbers> launchNumbers(const Trial &trial,
                                                       const kernel::ResolvedPlan *plan = nullptr);

/// What plans call the device's properties, as far as the trial recorded them: "sm_count", and on CUDA "warp_size" and "max_shared".
[[nodiscard]] kernel::Bindings recordedDeviceFacts(const Trial &trial);

} // namespace klineage::gate
