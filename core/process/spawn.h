// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/process/childprocess.h"

namespace klineage::process {

/// The three standard descriptors of a new child.
struct StandardFds {
    int in = -1;
    int out = -1;
    int err = -1;
};

/// Forks and executes from the process-wide spawning thread; returns once exec succeeded or failed. Thread-safe.
[[nodiscard]] Result<pid_t> spawn(const ChildOptions &options, const StandardFds &standard);

} // namespace klineage::process
