// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/job.h"

namespace klineage::gate {

/// How many contents the timed runs have that the oracle computes: one where that takes it seconds.
[[nodiscard]] int unseenSeeds(const workload::Workload &workload);

/// Inputs of the timed case. Moving and comparing hundreds of megabytes takes longer than all the rest of a quick trial, and what the timed
/// runs read is looked at besides, so that one seed has to do there.
[[nodiscard]] int seedsOf(const GateJob &job);

} // namespace klineage::gate
