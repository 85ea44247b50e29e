// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string>
#include <vector>

namespace klineage::process {

/// Which system calls a child may use.
enum class SystemCalls {
    Listed,   ///< what loads libraries, compiles, and computes in threads; no other
    Unlisted, ///< all but those that reach beyond the process: for drivers and interpreters, which use too many to be listed
};

/// What a child, and whatever it starts, may reach of the machine. The kernel enforces it, through Landlock and seccomp, where it
/// has them (isolationSupport()). Paths that do not exist are left out; a folder stands for everything beneath it; the program
/// that is started can always be read.
///
/// Whatever is named here, the child gains no privileges by executing a program, and has no network, no tracing or signalling of
/// other processes, no namespaces, mounts, kernel modules, clocks to set, BPF, io_uring or keyrings, and cannot leave its process
/// group. Descriptors that it inherits keep working.
struct Isolation {
    bool confinesFiles = true; ///< false: every file that its user may reach, without Landlock
    std::vector<std::filesystem::path> readable; ///< read and execute
    std::vector<std::filesystem::path> writable; ///< read, write, create, remove and rename; not execute
    std::vector<std::filesystem::path> devices;  ///< device files, or folders of them: read, write, ioctl
    bool ownProcess = true; ///< its own folder of /proc, where among other things its environment is
    bool movesFiles =
        false; ///< renames between folders, which Landlock grants only from ABI 2 on: left without it before
    SystemCalls systemCalls = SystemCalls::Unlisted;
    bool startsPrograms = true;    ///< false, with listed calls: threads, but no processes
    bool localSockets = false;     ///< sockets of this machine (AF_UNIX)
    std::vector<int> capabilities; ///< CAP_… that it keeps when the parent has them
};

/// What the kernel enforces for a child of this process: found out once, by confining one.
struct IsolationSupport {
    int landlockAbi = 0; ///< 0: no Landlock
    bool seccomp = false;
};
[[nodiscard]] const IsolationSupport &isolationSupport();

/// Gives up, for all threads of this process and for good, what a process no longer needs that has loaded and compiled all that it will:
/// files by name, new threads and processes, programs, memory to execute, other limits. To be called with no_new_privs, as isolated
/// processes have it. An error (Unavailable) where the kernel offers no seccomp.
[[nodiscard]] Status sealProcess();

/// "Landlock ABI 7 + seccomp", "seccomp, no Landlock", "Landlock ABI 3, no seccomp", "none".
[[nodiscard]] std::string describe(const IsolationSupport &support);

} // namespace klineage::process
