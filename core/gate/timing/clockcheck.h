// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/workersession.h"
#include "core/process/deadline.h"
#include "core/process/runqueue.h"

namespace klineage::gate {

/// What a worker said that some runs took, and what its supervisor saw of that; nanoseconds.
struct ClockReadings {
    double claimed = 0; ///< by the worker: its samples together
    double elapsed = 0; ///< on the supervisor's clock, with the exchange
    double samples = 0;
    process::ProcessorTime
        spent;          ///< of the worker: what its threads ran and waited at most (longestBetween())
    double ownWait = 0; ///< that the supervisor itself waited for a core
};

/// Times samples of `repeats` runs in one exchange, twice as many each time until it takes leastNs.
[[nodiscard]] WorkerResult<ClockReadings> readClock(WorkerSession &session, SubjectId subject, int repeats,
                                                    double leastNs, const process::Deadline &deadline);

/// Whether the worker's clock can be right. On a quiet machine the two agree within 5 % and what the exchange takes; on a busy one the time
/// that the kernel says others had the cores is taken off.
[[nodiscard]] bool clocksAgree(const ClockReadings &readings);

} // namespace klineage::gate
