// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/process/isolation.h"

#include <cstddef>
#include <linux/filter.h>
#include <vector>

namespace klineage::process {

/// A seccomp program that refuses, with EPERM, the system calls that an isolated process has no business with: all but those of a list,
/// or (SystemCalls::Unlisted) those of another list.
class SyscallFilter
{
public:
    /// Empty on an architecture other than x86-64 and AArch64.
    [[nodiscard]] static SyscallFilter make(const Isolation &isolation);
    /// For a process that has loaded and compiled all that it will: no files by name, no new threads, processes or programs, no memory
    /// to execute. Empty as above.
    [[nodiscard]] static SyscallFilter sealed();
    [[nodiscard]] bool empty() const { return m_program.empty(); }
    /// Confines the calling thread, for good; it must have no_new_privs. Async-signal-safe; 0 or errno.
    [[nodiscard]] int enter() noexcept;
    /// Confines all threads of the process.
    [[nodiscard]] int enterEverywhere() noexcept;

private:
    void begin();
    void addCommonRules();
    void addRefused();
    void addListed(const Isolation &isolation);
    void allow(long call);
    int install(unsigned flags) noexcept;
    void load(unsigned offset);
    void refuse(long call);
    void answer(long call, unsigned action);
    void onlyWhen(long call, unsigned argument, std::vector<unsigned> values, bool orSelf);
    void refuseValue(long call, unsigned argument, const std::vector<unsigned> &values);
    void refuseBits(long call, unsigned argument, unsigned bits);
    void onlyBits(long call, unsigned argument, unsigned bits); ///< refuses where none of them is set

    std::vector<sock_filter> m_program;
    std::vector<std::size_t>
        m_self; ///< instructions whose constant is the process's own id, known after the fork
};

} // namespace klineage::process
