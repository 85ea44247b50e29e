// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/languageprocess.h"

#include "core/gate/session/sandbox.h"
#include "core/gate/triton/tilelangcompiler.h"
#include "core/gate/triton/tritoncompiler.h"

#include <csignal>

namespace klineage::gate {

WorkerFailure compilerFailure(process::ChildProcess &child, const process::FramePipe &pipe,
                              const Error &error, double limitSeconds)
{
    WorkerFailure failure{FailureKind::Protocol, error, {}, {}, limitSeconds};
    if (error.code == ErrorCode::Timeout)
        failure.kind = FailureKind::Timeout;
    else if (error.code == ErrorCode::Cancelled)
        failure.kind = FailureKind::Cancelled;
    else if (pipe.ended() && !pipe.cut()) {
        failure.kind = FailureKind::Died;
        if (const auto status = child.wait(process::Deadline::in(2)))
            failure.exit = *status;
        const bool full = failure.exit && failure.exit->peakBytes > compileMemoryBytes / 2;
        if (failure.exit && failure.exit->signal == SIGKILL && process::isolationSupport().seccomp && !full) {
            failure.kind = FailureKind::Killed;
            failure.error = {
                ErrorCode::Internal,
                "The compiler was killed from outside, by the system when memory ran out or by somebody.",
                {}};
        }
    }
    child.kill();
    child.drain();
    failure.output = child.standardOutput().text + child.standardError().text;
    return failure;
}

std::unique_ptr<LanguageProcess> makeLanguageProcess(std::string_view language, LanguageProcess &cuda)
{
    if (language == kernel::Surface::Triton.language().word)
        return std::make_unique<TritonCompiler>();
    if (language == kernel::Surface::Tilelang.language().word)
        return std::make_unique<TilelangCompiler>(&cuda);
    return nullptr;
}

} // namespace klineage::gate
