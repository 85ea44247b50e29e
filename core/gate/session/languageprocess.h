// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/compilers.h"
#include "core/gate/session/workersession.h"

#include <memory>

namespace klineage::gate {

/// A language's compiler that needs a process of its own beside the compiler process, which starts none. Confined like that one. One
/// thread.
class LanguageProcess
{
public:
    virtual ~LanguageProcess() = default;
    /// "triton 3.6.0, ptxas 12.8, Python 3.12.3". FailureKind::Unavailable where it is missing, with how to get it.
    [[nodiscard]] virtual WorkerResult<std::string> version(const std::stop_token &stop) = 0;
    /// A source that does not compile is a value (ok false). Timeout and Died are the candidate's doing.
    [[nodiscard]] virtual WorkerResult<CompileOutput> compile(const CompileRequest &request,
                                                              double limitSeconds,
                                                              const std::stop_token &stop) = 0;
};

/// How a compiler ended that gave no answer: kills the child, and takes what it printed.
[[nodiscard]] WorkerFailure compilerFailure(process::ChildProcess &child, const process::FramePipe &pipe,
                                            const Error &error, double limitSeconds);

/// That of a language; nullptr where the compiler process compiles it. cuda: the compiler process, for one that writes CUDA C++; outlives it.
[[nodiscard]] std::unique_ptr<LanguageProcess> makeLanguageProcess(std::string_view language,
                                                                   LanguageProcess &cuda);

} // namespace klineage::gate
