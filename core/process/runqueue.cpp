// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/runqueue.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace klineage::process {

namespace {

/// The second number of schedstat: nanoseconds on a run queue.
double waitOf(const std::filesystem::path &thread)
{
    std::ifstream file(thread / "schedstat");
    double ran = 0;
    double waited = 0;
    return file >> ran >> waited ? waited : 0;
}

} // namespace

RunQueueWaits runQueueWaits(pid_t process)
{
    RunQueueWaits waits;
    std::error_code gone;
    std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", gone);
    for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone))
        waits[std::atoi(thread->path().filename().c_str())] = waitOf(thread->path());
    return waits;
}

double ownRunQueueWaitNs()
{
    return waitOf("/proc/thread-self");
}

double longestWaitNs(const RunQueueWaits &before, const RunQueueWaits &after)
{
    double longest = 0;
    for (const auto &[thread, waited] : after) {
        const auto earlier = before.find(thread);
        longest = std::max(longest, waited - (earlier == before.end() ? 0 : earlier->second));
    }
    return longest;
}

} // namespace klineage::process
