// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/session/compilersession.h"

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace klineage::gate {

/// A worker and a compiler of our own, which never see a candidate: what runs there is ours, and what lies in its memory no candidate
/// reaches. Started when it is first needed, and anew after a failure. Whoever uses it holds lock() meanwhile: the next case is computed
/// there on another thread than the one that compares.
class TrustedDevice
{
public:
    using Lock = std::unique_lock<std::recursive_mutex>;

    struct Kernel {
        const char *text = nullptr; ///< a candidate file of core/gate/oracle/kernels
        const char *name = nullptr;
        std::map<std::string, std::int64_t> tunables; ///< all of them
        [[nodiscard]] std::string source() const;     ///< what the compiler gets
        [[nodiscard]] std::string key() const;
    };

    /// As SupervisorOptions has them; workerCommand with its backend.
    TrustedDevice(std::vector<std::string> workerCommand, std::vector<std::string> compilerCommand,
                  CompileCache cache);

    [[nodiscard]] Lock lock() { return Lock(m_mutex); }
    /// Begins to start the worker, when there is none.
    void launch();
    /// A worker that is ready. Unavailable says, as a clause, why there is none; Cancelled is the other error, here and below.
    [[nodiscard]] Result<WorkerSession *> session(const std::stop_token &stop);
    /// Runs a kernel on buffers of the worker. bindings: what its plan names, and with the tunables all that its expressions name.
    [[nodiscard]] Status run(const Kernel &kernel, const BufferSet &bindings, kernel::Bindings sizes,
                             const std::stop_token &stop);
    /// Another number with each new worker, none of whose buffers are the earlier one's.
    [[nodiscard]] std::uint64_t generation() const { return m_generation; }
    /// Lets go of a buffer of that generation.
    void release(BufferId buffer, std::uint64_t generation);
    /// Kills the worker: its memory is all free again.
    void discard();

private:
    struct Loaded {
        ModuleId module = 0;
        kernel::Candidate candidate;
    };
    [[nodiscard]] Result<Loaded *> load(const Kernel &kernel, const std::stop_token &stop);

    std::recursive_mutex m_mutex;
    std::vector<std::string> m_workerCommand;
    CompilerSession m_compiler;
    std::unique_ptr<WorkerSession> m_session;
    std::uint64_t m_generation = 0;
    std::string m_broken; ///< why there will not be one
    std::map<std::string, Loaded> m_modules;
};

/// A failure of the trusted worker, as a clause.
[[nodiscard]] tl::unexpected<Error> trustedFailure(const WorkerFailure &failure);

} // namespace klineage::gate
