// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/correctness.h"

namespace klineage::gate {

/// How many buffer sets timed runs rotate over: enough that none finds its data in the cache, and for a sample, as far as memory and time
/// allow. sampleNs: of a sample that is no whole rotation.
[[nodiscard]] std::size_t setCount(const PreparedCandidate &candidate, const CorrectnessResult &correct,
                                   const TrialContext &context, double sampleNs);

} // namespace klineage::gate
