// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/workersession.h"

#include <filesystem>
#include <map>
#include <set>

namespace klineage::gate {

/// Builds programs for workers on the host in a process that runs none of them. A fresh worker pays for its compiler's start more than
/// for the program; here it is paid once, and each worker is given what the compiler left on disk, which its own finds instead of
/// compiling. Drivers that leave nothing there are not asked again. The process is started on first use, stays warm, and is replaced after
/// it hung or died and from time to time. One thread.
class ProgramBuilder
{
public:
    /// command: program and arguments of a worker of the device.
    ProgramBuilder(std::vector<std::string> command, kernel::DeviceKind device);

    /// Removes what was built for the trial before, so that no worker gets another trial's program.
    void beginTrial();
    /// Builds the program, gives it to the session and loads it there. What the compiler says is said once, while building.
    [[nodiscard]] WorkerResult<LoadedModule> load(WorkerSession &session, const std::string &source,
                                                  const std::map<std::string, std::int64_t> &tunables,
                                                  double limitSeconds, const std::stop_token &stop,
                                                  process::Deadline deadline);

private:
    /// Whether there is a process to build in, with the gate's own program built.
    [[nodiscard]] bool ensureStarted(const std::stop_token &stop);

    std::vector<std::string> m_command;
    kernel::DeviceKind m_device;
    std::unique_ptr<WorkerSession> m_session;
    std::set<std::filesystem::path> m_own; ///< folders of the gate's own programs
    int m_built = 0;
    bool m_useful = true;
};

/// Copies folders and plain files of the folder `from` that `to` lacks; links are neither read nor followed, whoever makes them
/// meanwhile. Up to 1024 files of 256 MiB in sum, eight folders deep.
[[nodiscard]] Status copyPrograms(const std::filesystem::path &from, const std::filesystem::path &to);

} // namespace klineage::gate
