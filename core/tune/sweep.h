// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/request.h"
#include "core/trial/trial.h"
#include "core/tune/search.h"

#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>

namespace klineage::gate::tune {

/// What makes the trials of a sweep: a pool, or a function in tests. With jobs above 1, run is called on as many threads.
struct Gate {
    std::function<Result<Trial>(const GateRequest &)> run;
    std::function<void(const GateRequest &)> prepare{}; ///< a trial that is likely to come soon; may be empty
};

struct SweepOptions {
    /// Candidate, workload, and the settings of the confirming trial. Its tunables and parent are not used.
    GateRequest request;
    std::map<std::string, std::vector<std::int64_t>> only; ///< see Space::of
    /// Text of another candidate that the fastest point is compared with at the end; empty: none.
    std::string against;
    int jobs = 1;    ///< gates that work at a time: points that the search picks together are tried together
    int budget = 64; ///< points that get a trial, the defaults among them
    double seconds =
        0; ///< no further point is begun after this long; 0: no limit. The confirmation is not counted.
    std::uint64_t seed = 1;
    /// Settings of the points: long enough to rank them. What is then believed is the confirming trial.
    double pointSeconds = 1.5;
    int pointRounds = 10;
    double pointHalfWidth = 0.005;
    /// Trials as JSON lines {"id", "trial"} or {"id", "error"}, appended one by one; those that are there already are not made again.
    /// Empty: none.
    std::filesystem::path out;
};

/// One point of the sweep: a trial of any status, or what kept the gate from making one.
struct PointResult {
    Point point;
    std::optional<Trial> trial;
    std::optional<Error> error;
    bool resumed = false; ///< from the out file

    [[nodiscard]] bool correct() const { return trial && trial->verdict.status == VerdictStatus::Correct; }
};

enum class SweepEnd { Complete, Budget, TimeLimit, Stopped, NoDevice };
[[nodiscard]] const char *toString(SweepEnd end); ///< complete budget time_limit stopped no_device

struct SweepResult {
    std::string search; ///< "exhaustive", "local"
    std::uint64_t seed = 0;
    std::uint64_t spaceSize = 0;
    SweepEnd end = SweepEnd::Complete;
    std::vector<PointResult> points; ///< the defaults first, then as they were tried
    /// Index of the fastest point other than the defaults, when it seemed faster than they are (or they are not correct).
    std::optional<std::size_t> best;
    /// The fastest of many measurements is partly the luckiest, so it is measured again, alone, against the defaults.
    std::optional<PointResult> confirmation;
    std::optional<PointResult> comparison; ///< the same point against `against`
    std::string conclusion;                ///< one sentence

    /// The confirming trial shows a gain over the defaults; or the defaults are not correct, and it is.
    [[nodiscard]] bool improved() const;
};

/// How fast a point is, as compared with the defaults: from paired rounds when there were such, else from the latencies. Nothing when
/// it is not correct.
[[nodiscard]] std::optional<double> speedOf(const PointResult &result, const PointResult &defaults);

/// Called on the calling thread after each point, confirmation and comparison.
using SweepProgress = std::function<void(const PointResult &, const std::string &role)>;

/// Trials of the points that a search picks: the defaults first, alone, then each other point with the defaults as its parent. A point
/// that does not compile, cannot be launched, is wrong or hangs is a result like any other. InvalidInput when the candidate
/// cannot be read or leaves nothing to choose, or the out file is of another sweep; other errors are those of the gate,
/// when it fails three times in a row. Points are told to the search in its own order, whatever the order in which their trials come, and
/// all trials are made on the device of the first, so that the result does not depend on the jobs. A stop request ends the sweep with what there is (run must obey the same token).
[[nodiscard]] Result<SweepResult> runSweep(const SweepOptions &options, const Gate &gate,
                                           const std::stop_token &stop = {},
                                           const SweepProgress &progress = {});

} // namespace klineage::gate::tune
