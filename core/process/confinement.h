// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/process/isolation.h"
#include "core/process/landlock.h"
#include "core/process/syscallfilter.h"

#include <cstdint>

namespace klineage::process {

/// An isolation made ready before a fork, to be entered in the child.
class Confinement
{
public:
    /// programs: what the child executes. Uses of the kernel's means those in `support`.
    [[nodiscard]] static Result<Confinement> make(const Isolation &isolation,
                                                  const std::vector<std::string> &programs,
                                                  const IsolationSupport &support);
    /// Async-signal-safe; 0, or the errno of a means that should have worked.
    [[nodiscard]] int enter() noexcept;

private:
    friend IsolationSupport probeIsolation();

    FileDescriptor m_ruleset; ///< empty: without Landlock
    SyscallFilter m_filter;   ///< empty: without seccomp
    bool m_ownProcess = true;
    int m_abi = 0;                    ///< of the ruleset
    std::uint64_t m_capabilities = 0; ///< kept, a bit each
};

} // namespace klineage::process
