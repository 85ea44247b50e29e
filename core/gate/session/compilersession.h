// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/compilers.h"
#include "core/gate/session/compilecache.h"
#include "core/gate/session/languageprocess.h"

#include <future>

namespace klineage::gate {

/// How long one compile may take.
inline constexpr double compileLimitSeconds = 60;

/// The compilers in a process of their own, with limits on time, memory and output, and a cache in front of it. The process is started on
/// first use, stays warm, and is replaced after it hung or died. One thread.
class CompilerSession
{
public:
    /// command: program and arguments of the compiler process.
    CompilerSession(std::vector<std::string> command, CompileCache cache);
    CompilerSession(const CompilerSession &) = delete;
    CompilerSession &operator=(const CompilerSession &) = delete;

    /// A source that does not compile is a value (ok false). FailureKind::Unavailable when the language's compiler is missing;
    /// Timeout and Died are the candidate's doing.
    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop);

private:
    struct Process {
        process::ScratchFolder scratch; // before the child, which is gone when it is removed
        process::ChildProcess child;
        process::FramePipe pipe;
        process::SharedMemory memory;
    };
    class Cuda;
    [[nodiscard]] WorkerResult<void> ensureStarted(const std::stop_token &stop);
    /// The version of the language's compiler.
    [[nodiscard]] WorkerResult<std::string> compilerOf(const std::string &language);
    /// The process of a language that has one of its own; nullptr: it has none.
    [[nodiscard]] LanguageProcess *processOf(const std::string &language);
    [[nodiscard]] tl::unexpected<WorkerFailure> end(const Error &error, double limitSeconds);
    [[nodiscard]] WorkerResult<CompileOutput> ask(const CompileRequest &wanted, double limitSeconds,
                                                  const std::stop_token &stop);

    std::vector<std::string> m_command;
    CompileCache m_cache;
    std::unique_ptr<Process> m_process;
    std::map<std::string, Result<std::string>> m_compilers; ///< language -> version, or what is wrong
    std::unique_ptr<LanguageProcess>
        m_cuda; ///< the compiler process, as languages that write CUDA C++ see it
    std::map<std::string, std::unique_ptr<LanguageProcess>> m_processes; ///< language -> its own, or nullptr
    std::future<void> m_storing; ///< of the last program: the disk takes longer than many a compile
};

} // namespace klineage::gate
