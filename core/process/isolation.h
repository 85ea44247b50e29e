// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace klineage::process {

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
    bool localSockets = false;     ///< sockets of this machine (AF_UNIX)
    std::vector<int> capabilities; ///< CAP_… that it keeps when the parent has them
};

/// What the kernel enforces for a child of this process: found out once, by confining one.
struct IsolationSupport {
    int landlockAbi = 0; ///< 0: no Landlock
    bool seccomp = false;
};
[[nodiscard]] const IsolationSupport &isolationSupport();

/// "Landlock ABI 7 + seccomp", "seccomp, no Landlock", "Landlock ABI 3, no seccomp", "none".
[[nodiscard]] std::string describe(const IsolationSupport &support);

} // namespace klineage::process
