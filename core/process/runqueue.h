// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <map>
#include <sys/types.h>

namespace klineage::process {

/// How long each thread of a process has waited for a processor since it began, although it was ready to run, in nanoseconds: the
/// kernel's own account, which the process cannot change. Empty where the kernel keeps none, or when there is no such process.
using RunQueueWaits = std::map<pid_t, double>;
[[nodiscard]] RunQueueWaits runQueueWaits(pid_t process);
/// The same of the calling thread; 0 where the kernel keeps no account.
[[nodiscard]] double ownRunQueueWaitNs();

/// How much longer the thread waited that waited longest between the two.
[[nodiscard]] double longestWaitNs(const RunQueueWaits &before, const RunQueueWaits &after);

} // namespace klineage::process
