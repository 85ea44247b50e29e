// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/process/isolation.h"

#include <cstddef>
#include <linux/filter.h>
#include <vector>

namespace klineage::process {

/// A seccomp program that refuses, with EPERM, the system calls that an isolated process has no business with. Calls that it does
/// not name are allowed: runtimes and drivers use too many for a list of the good ones to hold.
class SyscallFilter
{
public:
    /// Empty on an architecture other than x86-64 and AArch64.
    [[nodiscard]] static SyscallFilter make(const Isolation &isolation);
    [[nodiscard]] bool empty() const { return m_program.empty(); }
    /// Confines the calling thread, for good; it must have no_new_privs. Async-signal-safe; 0 or errno.
    [[nodiscard]] int enter() noexcept;

private:
    void load(unsigned offset);
    void refuse(long call);
    void answer(long call, unsigned action);
    void onlyWhen(long call, unsigned argument, std::vector<unsigned> values, bool orSelf);
    void refuseValue(long call, unsigned argument, const std::vector<unsigned> &values);
    void refuseBits(long call, unsigned argument, unsigned bits);

    std::vector<sock_filter> m_program;
    std::vector<std::size_t>
        m_self; ///< instructions whose constant is the process's own id, known after the fork
};

} // namespace klineage::process
