// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/timing/measuredsides.h"

namespace klineage::gate {

/// How far two copies of one candidate seem apart, by workload, platform and candidate; measured once a session.
using NoiseFloors = std::map<std::string, double>;

struct ProfileRequest {
    bool withParent = true;
    bool withReference = true;
};

/// Times the correct candidate against its parent and the vendor reference over rotating buffer sets, checks the outputs of timed
/// runs, and fills the trial's latency, comparisons, samples, metrics and environment. What cannot be compared is said in the
/// verdict's evidence.
[[nodiscard]] tl::expected<void, ProfileEnd> profileCandidate(
    PreparedCandidate &candidate, const CorrectnessResult &correct, CompilerSession &compiler,
    const ProfileRequest &request, const TrialContext &context, NoiseFloors &noise, Trial &trial);

} // namespace klineage::gate
