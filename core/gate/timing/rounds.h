// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/supervisor/trialcontext.h"
#include "core/trial/statistics.h"

namespace klineage::gate {

/// One side of the measurement.
struct TimedSubject {
    std::string
        name; ///< "candidate", "copy" (a second copy of the candidate), "parent", or the reference's provider
    SubjectId id = 0;       ///< in this block
    int repeats = 0;        ///< runs a sample; 0: not estimated yet
    std::vector<double> ns; ///< of one run, one entry a round
    double estimateNs = 0;
    /// Takes a sample elsewhere than in the session's worker (a reference with a process of its own); empty: in the worker.
    std::function<WorkerResult<TimedSample>(const TimedRun &run, double limitSeconds)> sampler;
    WorkerSession *worker = nullptr; ///< that it runs in; nullptr: the session's
};

/// What is asked of a measurement, and what is left for it.
struct StopRule {
    int minRounds = 30;
    double targetHalfWidth = 0.002; ///< relative, of 95 %
    bool quick = false;             ///< as soon as the comparison with the parent is certain
    bool timeIsUp = false;
    bool mustEnd = false; ///< whatever there is
};

/// A failure and the subject that was being timed.
struct RoundFailure {
    std::variant<WorkerFailure, TrialEnd>
        failure; ///< of the worker; or what its outputs ended the trial with
    std::size_t subject = 0;
};
using RoundResult = tl::expected<void, RoundFailure>;

/// What the rounds of all blocks share.
struct RoundState {
    std::size_t sets = 1; ///< buffer sets of every subject
    bool copyApart =
        false; ///< the copy runs on contents of its own: nothing that it leaves is of use to the candidate
    double sampleNs = 200e3;  ///< length of a sample that is no whole rotation
    double rotationNs = 50e6; ///< a rotation that is quicker is one sample: one graph then serves them all
    double slowRotationNs = 50e6;       ///< the same of a side that is several times slower than the fastest
    std::size_t firstSet = 0;           ///< of those that samples of this block visit
    std::size_t window = 0;             ///< how many those are; 0: all
    std::vector<std::size_t> blockEnds; ///< rounds at the end of each block
    std::size_t visited = 0;            ///< of the window: in half a round all sides run on the same sets
    int discarded = 0;                  ///< rounds thrown away because the clock moved
    std::vector<double> clocksMhz;      ///< of the kept samples; empty when the device does not tell
    /// Judges what a sample of a worker's left in its outputs.
    std::function<RoundResult(std::size_t subject, const TimedRun &run, const TimedSample &sample)> look;
    /// A sample that nobody times (timing/decoys.h), and what judges it.
    struct Decoy {
        TimedRun run;
        std::function<RoundResult(const TimedSample &sample)> judge;
        std::size_t subject = 0;
    };
    /// For one place: of the first subject, and perhaps of another one; empty: there are none.
    std::function<std::vector<Decoy>()> decoys;
    /// Looks closer at what one sample of the first subject's in a block left, right after it; empty: that is not done.
    std::function<RoundResult(const TimedRun &run)> lookCloser;
};

/// How often a subject is run for one sample: once over each set when that takes rotationNs at most, else for about sampleNs. No set is
/// visited twice, so that no run finds what an earlier one left.
[[nodiscard]] int repeatsFor(double runNs, std::size_t sets, double sampleNs, double rotationNs);

/// Sets the runs a sample of every subject from the estimates. Those within four times the fastest get the same number, so that what a
/// sample costs besides its runs weighs alike on sides that are near to each other; one that is slower has samples of its own.
void setRepeats(std::vector<TimedSubject> &subjects, const RoundState &state);

/// The clocks of a round's samples (`subjects`: of which side each one is) tell no change of the device's clock: the two samples of a side
/// agree within 2 %. Sides may differ, since a kernel that draws more power runs at a lower clock; a sample without a clock says nothing.
[[nodiscard]] bool isSteady(const std::vector<TimedSample> &samples,
                            const std::vector<std::size_t> &subjects);

/// Warms the subjects up in their present placement; the first time it also estimates their latencies and sets their repeats. Later on a
/// subject whose sample takes long is not warmed up: one such run has warmed the device.
[[nodiscard]] RoundResult warmUp(std::vector<TimedSubject> &subjects, RoundState &state,
                                 const TrialContext &context);

/// Interleaves the subjects in ABBA rounds (all of them in a random order, then in the opposite one; a round's entry is the mean of a
/// subject's two samples), with decoys between any two samples. Half a round has content of its own, on which each side runs once.
[[nodiscard]] RoundResult runBlock(std::vector<TimedSubject> &subjects, int rounds, RoundState &state,
                                   const TrialContext &context);

/// One more sample of a subject, like any other, with content of its own.
[[nodiscard]] TimedRun furtherRun(const TimedSubject &subject, const RoundState &state);

/// Expected nanoseconds of one round.
[[nodiscard]] double roundNs(const std::vector<TimedSubject> &subjects);

/// The widest relative half-width of the comparisons with the first subject; of its own latency when it is alone.
[[nodiscard]] double widestHalfWidth(const std::vector<TimedSubject> &subjects, const RoundState &state);

/// Resamples of the intervals that a trial keeps.
inline constexpr int finalResamples = 2000;

/// noiseFloor() of the subject "copy"; nothing without one.
[[nodiscard]] std::optional<double> copySpread(const std::vector<TimedSubject> &subjects,
                                               const RoundState &state);

/// Fewer say nothing of what placement does.
inline constexpr std::size_t fewestBlocks = 5;

/// Why timing stops after these blocks: "half_width", "decided", "time_limit", "round_limit"; empty: it goes on. width: widestHalfWidth(). A
/// comparison with the subject "parent" that isOpen() is not left at the half-width that was asked for, but near 0.08 %.
[[nodiscard]] std::string stopReason(const std::vector<TimedSubject> &subjects, const RoundState &state,
                                     const StopRule &rule, double width, std::optional<double> spread);

} // namespace klineage::gate
