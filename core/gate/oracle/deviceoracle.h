// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/expected.h"
#include "core/gate/oracle/oraclejob.h"
#include "core/gate/session/compilersession.h"
#include "core/gate/session/workersession.h"

#include <map>
#include <memory>
#include <string>

namespace klineage::gate {

/// Expected outputs computed on a CUDA device, by kernels of ours in double. A worker process and a compiler process of its own, which
/// never see a candidate; both are started when they are first wanted and stay warm. A kernel is checked against the CPU's oracle on
/// small cases each time it is loaded; one that disagrees is not used again. One thread.
class DeviceOracle
{
public:
    /// workerCommand: with its "--backend cuda".
    DeviceOracle(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                 CompileCache cache);

    /// Starts the worker, if there is none, without waiting for it: so that it is there when it is wanted.
    void launch();

    /// The expected outputs. wide: in double, else rounded to single precision. Cancelled; every other Error says in a clause why the
    /// device cannot be had for it, and the CPU has to do it.
    [[nodiscard]] Result<ExpectedOutputs> compute(const workload::Workload &workload,
                                                  const std::vector<HostTensor> &tensors, bool wide,
                                                  const std::stop_token &stop);

    /// Process id of the worker; -1: there is none. For tests.
    [[nodiscard]] pid_t pid() const { return m_session && m_session->alive() ? m_session->pid() : -1; }

private:
    struct Loaded {
        ModuleId module = 0;
        kernel::Candidate candidate;
    };
    [[nodiscard]] Result<WorkerSession *> session(const std::stop_token &stop);
    [[nodiscard]] Result<Loaded *> load(const OracleJob &job, const std::stop_token &stop);
    [[nodiscard]] Status check(const workload::Workload &workload, const std::vector<HostTensor> &tensors,
                               bool wide, const OracleJob &job, const std::stop_token &stop);
    [[nodiscard]] Result<ExpectedOutputs> perform(const OracleJob &job, const std::stop_token &stop);
    [[nodiscard]] WorkerResult<ExpectedOutputs> performOn(WorkerSession &session, const Loaded &loaded,
                                                          const kernel::ResolvedPlan &plan,
                                                          const OracleJob &job);

    std::vector<std::string> m_workerCommand;
    CompilerSession m_compiler;
    std::unique_ptr<WorkerSession> m_session;
    std::map<std::string, Loaded> m_modules; ///< in the session, by key
    std::map<std::string, std::string>
        m_verdicts;       ///< key of what was checked in the session -> why not; empty: it is right
    std::string m_broken; ///< why no worker can be had; empty: not known to be so
};

} // namespace klineage::gate
