// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <sys/types.h>

namespace klineage::process {

/// What the kernel's own account says of a thread since it began, in nanoseconds; the process cannot change it.
struct ProcessorTime {
    double ranNs = 0;    ///< on a processor
    double waitedNs = 0; ///< ready to run, but other threads had the processors
};
/// By thread. Empty where the kernel keeps no account, or when there is no such process.
using ProcessorTimes = std::map<pid_t, ProcessorTime>;
[[nodiscard]] ProcessorTimes processorTimes(pid_t process);
/// The same of the calling thread; zeros where the kernel keeps no account.
[[nodiscard]] ProcessorTime ownProcessorTime();

/// Between the two: how long the thread ran that ran longest, and how long the thread waited that waited longest.
[[nodiscard]] ProcessorTime longestBetween(const ProcessorTimes &before, const ProcessorTimes &after);

} // namespace klineage::process
