// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"
#include "core/process/isolation.h"

namespace klineage::process {

/// The newest Landlock ABI that this project knows and the kernel has; 0: none, or it is refused here.
[[nodiscard]] int landlockAbi();

/// A ruleset that allows what the isolation names and `programs`, with the rights that this ABI knows. Its descriptor is above
/// those that a child inherits.
[[nodiscard]] Result<FileDescriptor> landlockRuleset(const Isolation &isolation,
                                                     const std::vector<std::string> &programs, int abi);

/// Confines the calling thread, for good; it must have no_new_privs. Adds /proc/self, which is another folder in each process, when
/// it is wanted. Async-signal-safe; 0 or errno.
[[nodiscard]] int enterLandlock(int ruleset, bool ownProcess, int abi) noexcept;

} // namespace klineage::process
