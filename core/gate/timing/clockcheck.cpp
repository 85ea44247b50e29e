// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/clockcheck.h"

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

} // namespace

bool clocksAgree(const ClockReadings &r)
{
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
