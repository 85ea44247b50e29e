// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/process/childprocess.h"
#include "core/process/framepipe.h"
#include "core/process/scratchfolder.h"
#include "core/process/sharedmemory.h"

#include <nlohmann/json_fwd.hpp>

#include <memory>
#include <stop_token>
#include <string>

namespace klineage::gate {

struct PythonOracleLimits {
    double startSeconds = 120; ///< of the interpreter, its imports, and the source when it is run
    double callSeconds = 300;
};

/// A python3 process that has run the source of a workload's oracle, and the conversation with it (resources/python/oracle.py, which is
/// part of this program). It may read its interpreter and the system's libraries, write to a folder that is removed with it, and start
/// neither programs nor processes; what it says is believed in nothing but the values. KLINEAGE_PYTHON names another interpreter. After
/// a failure of the process, every later call fails; a refusal (an exception, another shape) leaves it alive. One thread.
class OracleProcess
{
public:
    /// Unavailable: there is no python3, or not the package that the oracle is handed arrays of. InvalidInput: what the source did wrong.
    [[nodiscard]] static Result<std::unique_ptr<OracleProcess>> start(const workload::PythonOracle &oracle,
                                                                      const std::stop_token &stop = {},
                                                                      const PythonOracleLimits &limits = {});

    /// Expected outputs in double. The first time for so much work that it can be afforded, it is asked twice; an oracle that says
    /// something else then is refused, and so is one that gives NaN.
    [[nodiscard]] Result<Expected> compute(const workload::Workload &workload,
                                           const std::vector<HostTensor> &tensors,
                                           const std::stop_token &stop = {});
    /// What a function of the source without parameters returns.
    [[nodiscard]] Result<nlohmann::json> tell(const std::string &function, const std::stop_token &stop = {});

    [[nodiscard]] bool alive() const { return m_alive; }
    /// "torch 2.9.0, Python 3.11.2"
    [[nodiscard]] const std::string &version() const { return m_version; }
    [[nodiscard]] pid_t pid() const { return m_child.pid(); }

private:
    struct Layout;
    [[nodiscard]] Result<Layout> layout(const workload::Workload &workload,
                                        const std::vector<HostTensor> &tensors) const;
    [[nodiscard]] Result<Expected> run(const workload::Workload &workload, const Layout &layout,
                                       const std::stop_token &stop);
    [[nodiscard]] Result<nlohmann::json> ask(const nlohmann::json &request, double limitSeconds,
                                             const std::stop_token &stop);
    [[nodiscard]] tl::unexpected<Error> failed(Error error);

    PythonOracleLimits m_limits;
    bool m_alive = true;
    bool m_agreed = false; ///< with itself, when it was asked twice
    std::string m_version;
    process::ScratchFolder m_scratch;
    process::ChildProcess m_child;
    process::FramePipe m_pipe;
    process::SharedMemory m_memory;
};

/// Keeps the process of the oracle that was asked last. One thread at a time.
class PythonOracles
{
public:
    PythonOracles() = default;
    explicit PythonOracles(const PythonOracleLimits &limits)
        : m_limits(limits)
    {}
    /// workload.python is there.
    [[nodiscard]] Result<Expected> compute(const workload::Workload &workload,
                                           const std::vector<HostTensor> &tensors,
                                           const std::stop_token &stop = {});
    /// Of the oracle that was asked last.
    [[nodiscard]] std::string version() const { return m_process ? m_process->version() : std::string(); }

private:
    PythonOracleLimits m_limits;
    workload::PythonOracle m_oracle;
    std::unique_ptr<OracleProcess> m_process;
};

} // namespace klineage::gate
