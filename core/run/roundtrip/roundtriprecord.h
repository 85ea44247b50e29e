// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"
#include "core/run/roundtrip/roundtriplog.h"
#include "core/trial/verdict.h"

#include <stop_token>

namespace klineage::run {

/// A reply, with what its trial says of it.
struct RoundtripTry {
    RoundtripLine line;
    std::string time;   ///< UTC, of its trial; empty: nothing was gated, or the trial is not there
    std::string device; ///< of its trial
    std::optional<gate::Interval> speedup; ///< over the last state, from the same rounds
};

/// One author's way: as many tries as it took, or as there were.
struct RoundtripTrial {
    int trial = 1;
    std::vector<RoundtripTry> tries; ///< the first one first; empty: no reply is recorded
};

struct RoundtripArm {
    std::string arm;
    std::vector<RoundtripTrial> trials; ///< from 1 on; what the log skips is there without a try
    RoundtripCount count;
    gate::Interval recovered; ///< share of count.trials, with an exact interval of 95 %
    gate::Interval first;     ///< the same by the first reply
};

/// What is recorded of a lineage's roundtrips.
struct RoundtripRecord {
    std::vector<RoundtripArm> arms;   ///< "full", "no-blocks", "none", then others in the order of the log
    std::vector<std::string> notices; ///< trials that could not be read
    std::string
        against; ///< sha-256 of the candidate that the newest of its trials was timed beside; empty: there is none
};

/// Id of the state that the trials were timed beside, which was the last one then; of the last one when no state's trial is of that text; "K*"
/// when there are no states.
[[nodiscard]] std::string roundtripGoal(const lineage::Lineage &lineage, const RoundtripRecord &record);

/// Reads log and trials: some tens of milliseconds, for no UI thread. No arms when there is no log. Stopped, it is incomplete.
[[nodiscard]] Result<RoundtripRecord> readRoundtripRecord(const std::filesystem::path &lineageDirectory,
                                                          const std::stop_token &stop = {});

/// Another text as soon as log or trials are others. Looks at sizes and times only.
[[nodiscard]] std::string roundtripStamp(const std::filesystem::path &lineageDirectory);

} // namespace klineage::run
