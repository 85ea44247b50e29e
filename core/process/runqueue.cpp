// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/runqueue.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace klineage::process {

namespace {

/// The first two numbers of schedstat.
ProcessorTime timeOf(const std::filesystem::path &thread)
{
    std::ifstream file(thread / "schedstat");
    ProcessorTime time;
    return file >> time.ranNs >> time.waitedNs ? time : ProcessorTime();
}

} // namespace

ProcessorTimes processorTimes(pid_t process)
{
    ProcessorTimes times;
    std::error_code gone;
    std::filesystem::directory_iterator thread("/proc/" + std::to_string(process) + "/task", gone);
    for (; !gone && thread != std::filesystem::directory_iterator(); thread.increment(gone))
        times[std::atoi(thread->path().filename().c_str())] = timeOf(thread->path());
    return times;
}

ProcessorTime ownProcessorTime()
{
    return timeOf("/proc/thread-self");
}

ProcessorTime longestBetween(const ProcessorTimes &before, const ProcessorTimes &after)
{
    ProcessorTime longest;
    for (const auto &[thread, now] : after) {
        const auto found = before.find(thread);
        const ProcessorTime earlier = found == before.end() ? ProcessorTime() : found->second;
        longest.ranNs = std::max(longest.ranNs, now.ranNs - earlier.ranNs);
        longest.waitedNs = std::max(longest.waitedNs, now.waitedNs - earlier.waitedNs);
    }
    return longest;
}

} // namespace klineage::process
