// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/workersession.h"
#include "core/gate/supervisor/job.h"
#include "core/trial/trial.h"

#include <filesystem>
#include <memory>
#include <stop_token>

namespace klineage::gate {

struct Ceilings;

struct SupervisorOptions {
    std::vector<std::string> workerCommand;   ///< before "--backend NAME"; empty: this program as `worker`
    std::vector<std::string> compilerCommand; ///< empty: this program as `compile`
    /// 0: every trial has seeds of its own. N > 0: seeds of the timed case are drawn from N that this supervisor made at random,
    /// whose inputs and expected outputs it keeps. Recorded in the evidence.
    int seedPool = 0;
    std::filesystem::path cacheDirectory; ///< empty: no compile cache
    /// Where gates of this machine meet to take turns on a device (DeviceTurn); empty: nobody is waited for.
    std::filesystem::path turnDirectory;
    /// The first worker of each surface runs a kernel of the gate's own, and what fails there makes the device unavailable instead of
    /// being told as the candidate's crash. False: for workers of tests that compute nothing.
    bool trustedKernel = true;
};

/// The trusted half of the gate: seeds, inputs, oracle, comparison and decision; starts workers and compilers and keeps them warm.
/// One gate() at a time, on any one thread; a stop request kills the worker at once.
class Supervisor
{
public:
    explicit Supervisor(SupervisorOptions options);
    ~Supervisor();
    Supervisor(const Supervisor &) = delete;
    Supervisor &operator=(const Supervisor &) = delete;

    /// A verdict of any status is a success. Errors: InvalidInput (the request), Cancelled, and what is broken on this machine.
    [[nodiscard]] Result<Trial> gate(const GateJob &job, const std::stop_token &stop = {},
                                     const ProgressCallback &progress = {});

    /// A candidate that is likely to be gated soon. A CUDA one is compiled in the background, by a compiler process of its own. Does
    /// not block; may be called from any thread, also during gate(). Candidates that cannot be compiled are left to gate().
    void compileAhead(const GateRequest &request);

    /// Opens each backend in a worker and says what it is, or what is missing.
    [[nodiscard]] std::vector<DeviceInfo> devices(const std::stop_token &stop = {});

    /// What the surface's device can do at most; kept figures, or new ones (`again`: in any case).
    [[nodiscard]] Result<Ceilings> ceilings(kernel::DeviceKind device, bool again,
                                            const std::stop_token &stop = {},
                                            const ProgressCallback &progress = {});

    /// What a backend's present worker was asked and how long that took: where the time of trials goes.
    [[nodiscard]] OperationTimes operations(kernel::DeviceKind device) const;

    /// Process id of the worker that a backend's next candidate gets; -1 when it is not running yet. For tests.
    [[nodiscard]] pid_t workerPid(kernel::DeviceKind device) const;

private:
    struct Private;
    std::unique_ptr<Private> m_d;
};

} // namespace klineage::gate
