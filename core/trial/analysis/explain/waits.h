// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// What the time of a run is divided into: kinds of waiting and working that have one remedy.
struct TimeGroup {
    const char *id;                    ///< stable: "memory"
    const char *title;                 ///< "Waiting for global or local memory"
    std::vector<const char *> reasons; ///< of samples of the program counter
    std::vector<const char *> metrics; ///< that tell more about it, the most telling first
};

inline constexpr auto outsideGroup = "outside"; ///< between and around kernels
inline constexpr auto idleGroup = "idle";       ///< multiprocessors without a warp
inline constexpr auto busyGroup = "busy";   ///< multiprocessors with warps, where nothing says what these did
inline constexpr auto otherGroup = "other"; ///< reasons that no group names

[[nodiscard]] const std::vector<TimeGroup> &timeGroups();
/// The group that names a reason, otherGroup when none does.
[[nodiscard]] std::string groupOfReason(std::string_view reason);
/// "stall_no_instruction" of "no_instructions": the metric that has the share of a reason, whether or not a trial has it.
[[nodiscard]] std::string metricOfReason(std::string_view reason);

} // namespace klineage::gate
