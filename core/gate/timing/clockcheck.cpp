// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/clockcheck.h"

#include <chrono>

namespace klineage::gate {

namespace {

constexpr double quietWaiting =
    0.05; ///< share of the time that others had the cores: less is a quiet machine
constexpr double quietTolerance = 1.05;
constexpr double quietSlackNs = 1e6;       ///< of the exchange
constexpr double quietSampleSlackNs = 3e5; ///< between the samples of it
constexpr double tolerance =
    2.5; ///< a busy machine waits between launches, which no clock of the worker sees
constexpr double slackNs = 5e6;
constexpr double busyTolerance = 1.1;
constexpr double busySlackNs = 2e6;
constexpr double mostWaiting =
    1.25; ///< of the time it ran: with busyTolerance no more than `tolerance` is forgiven

constexpr std::size_t mostSamples = 4096;

} // namespace

WorkerResult<ClockReadings> readClock(WorkerSession &session, SubjectId subject, int repeats, double leastNs,
                                      const process::Deadline &deadline)
{
    ClockReadings readings;
    for (std::size_t samples = 2;; samples *= 2) {
        const std::vector<TimedRun> runs(samples, {subject, 0, repeats, 0, true});
        const auto before = process::processorTimes(session.pid());
        const double ownBefore = process::ownProcessorTime().waitedNs;
        const auto begin = std::chrono::steady_clock::now();
        const auto taken = session.time(runs, deadline.secondsLeft());
        readings.elapsed =
            std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now() - begin).count();
        readings.spent = process::longestBetween(before, process::processorTimes(session.pid()));
        readings.ownWait = process::ownProcessorTime().waitedNs - ownBefore;
        if (!taken)
            return tl::unexpected(taken.error());
        readings.samples = static_cast<double>(samples);
        readings.claimed = 0;
        for (const TimedSample &sample : *taken)
            readings.claimed += sample.ns * repeats;
        if (readings.elapsed > leastNs || samples >= mostSamples)
            return readings;
    }
}

bool clocksAgree(const ClockReadings &r)
{
    if (r.claimed > quietTolerance * r.elapsed + quietSlackNs)
        return false; // no clock that is right can tell of more than there was
    // What the exchange itself may take besides.
    const double agreed = quietTolerance * r.claimed + quietSlackNs + quietSampleSlackNs * r.samples;
    const bool quiet = r.spent.waitedNs + r.ownWait <= quietWaiting * r.elapsed;
    if (r.elapsed <= (quiet ? agreed : tolerance * r.claimed + slackNs))
        return true;
    // Where other processes kept the cores busy, the kernel says for how long; what is left must agree the better. A kernel that waits
    // for most of its time could hide a slower clock behind that, so nothing is taken off then. And what one thread alone ran for, a
    // clock that is right cannot miss, however long it waited besides.
    const bool agreesWithoutWaiting =
        r.spent.waitedNs <= mostWaiting * r.spent.ranNs
        && r.elapsed - r.spent.waitedNs - r.ownWait <= busyTolerance * r.claimed + busySlackNs;
    const bool agreesWithThread = r.spent.ranNs > 0 && r.spent.ranNs <= agreed;
    return !quiet && (agreesWithoutWaiting || agreesWithThread);
}

} // namespace klineage::gate
