// SPDX-License-Identifier: GPL-3.0-or-later
//
// What is hard in a few places of all contents of the timed shape, those of timed runs too. A candidate that is right only where nothing is
// hard could otherwise look at a few elements, and do right where they are unusual: that costs it nothing in the runs that are timed.
#pragma once

#include "core/workload/workload.h"

#include <cstdint>
#include <span>

namespace klineage::gate {

/// The workload with such places in its timed case. Of the delta rule the last head forgets nothing and is hardly corrected; of what does not
/// change when a row is shifted, one row in sixteen lies so high that its exponentials are infinite, or so low that they are zero, by an amount of its own: the whole of it, since what lies far below the maximum of its
/// row has an exponential of zero, on which divisions take longer. Both cost a kernel that computes all of it nothing. Others are as they were.
[[nodiscard]] workload::Workload withStandingHardness(workload::Workload workload);

/// The distributions say the same, such places aside.
[[nodiscard]] bool saysTheSame(workload::Distribution one, workload::Distribution other);

/// Makes those places, last of all; `values` are elements of a tensor from the first-th on.
void applyStandingHardness(std::span<float> values, std::uint64_t first, std::uint64_t rowLength,
                           const workload::Distribution &distribution, std::uint64_t seed,
                           std::uint64_t stream);

} // namespace klineage::gate
