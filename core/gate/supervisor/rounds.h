// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/statistics.h"
#include "core/gate/supervisor/trialcontext.h"

namespace klineage::gate {

/// One side of the measurement.
struct TimedSubject {
    std::string
        name; ///< "candidate", "copy" (a second copy of the candidate), "parent", or the reference's provider
    SubjectId id = 0;
    int repeats = 1;        ///< runs a sample
    std::vector<double> ns; ///< of one run, one entry a round
    double estimateNs = 0;
};

struct RoundLimits {
    int minRounds = 30;
    double targetHalfWidth = 0.002;
    double seconds = 10;
};

struct RoundsOutcome {
    std::string stopReason; ///< "half_width", "time_limit", "round_limit"
};

/// How often a subject is run for one sample: about 200 µs, whole rotations over the buffer sets unless a rotation takes long.
[[nodiscard]] int repeatsFor(double runNs, std::size_t sets);

/// A failure and the subject that was being timed.
struct RoundFailure {
    WorkerFailure failure;
    std::size_t subject = 0;
};

/// Estimates each subject's latency and sets its repeats; also the warm-up.
[[nodiscard]] tl::expected<void, RoundFailure> estimate(std::vector<TimedSubject> &subjects, std::size_t sets,
                                                        const TrialContext &context);

/// Interleaves the subjects in ABBA rounds (all of them forwards, then backwards; a round's entry is the mean of a subject's two
/// samples) until every comparison with the first subject is narrow enough, or time is up.
[[nodiscard]] tl::expected<RoundsOutcome, RoundFailure> runRounds(std::vector<TimedSubject> &subjects,
                                                                  const RoundLimits &limits,
                                                                  const TrialContext &context);

} // namespace klineage::gate
