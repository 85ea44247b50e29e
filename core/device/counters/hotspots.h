// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/listing.h"
#include "core/trial/trial.h"

#include <span>
#include <vector>

namespace klineage::gate::counters {

inline constexpr std::size_t mostHotspots = 200;

/// One hotspot a kernel and line, most samples first, at most `most`.
[[nodiscard]] std::vector<Hotspot> rankHotspots(std::span<const ListedInstruction> samples,
                                                std::size_t most = mostHotspots);

/// "smsp__pcsamp_warps_issue_stalled_long_scoreboard" -> "long_scoreboard"; empty for counters that are no reason of their own, such as
/// the "_not_issued" shares of others.
[[nodiscard]] std::string stallReason(std::string_view counter);

} // namespace klineage::gate::counters
