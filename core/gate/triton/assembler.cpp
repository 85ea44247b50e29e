// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/assembler.h"

#include "core/device/cuda/ptxaslog.h"
#include "core/files/atomicfile.h"
#include "core/gate/session/sandbox.h"

#include <cstring>

namespace klineage::gate {

namespace {

constexpr double assemblerStartSeconds = 20;
constexpr double sliceSeconds = 0.1;
constexpr std::size_t mostCubinBytes = std::size_t{64} << 20;

WorkerFailure assemblerFailure(FailureKind kind, const Error &error)
{
    return {kind, error, {}, {}, 0};
}

/// Until it ends, the deadline passes, or somebody asks to stop.
Result<process::ExitStatus> waitFor(process::ChildProcess &child, process::Deadline deadline,
                                    const std::stop_token &stop)
{
    for (;;) {
        auto status = child.wait(process::Deadline::earlier(deadline, process::Deadline::in(sliceSeconds)));
        if (status || status.error().code != ErrorCode::Timeout || deadline.passed())
            return status;
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The assembler was stopped.");
    }
}

} // namespace

Result<std::string> assemblerRelease(const std::string &program)
{
    process::ChildOptions options;
    options.command = {program, "--version"};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    const auto status = child->wait(process::Deadline::in(assemblerStartSeconds));
    if (!status)
        return tl::unexpected(status.error());
    const std::string &said = child->standardOutput().text; // "…, release 12.8, V12.8.93"
    constexpr std::string_view word = "release ";
    const std::size_t at = said.find(word);
    const std::size_t begin = at == std::string::npos ? said.size() : at + word.size();
    const std::string release = said.substr(begin, said.find_first_not_of("0123456789.", begin) - begin);
    if (!status->ok() || release.find('.') == std::string::npos)
        return fail(ErrorCode::Unavailable, program + " does not say which release of CUDA it is of.");
    return release;
}

WorkerResult<CompileOutput> assemble(const std::vector<std::string> &command, const std::string &ptx,
                                     const std::string &target, process::Deadline deadline,
                                     const std::stop_token &stop)
{
    const auto machine = [](const Error &error) {
        return tl::unexpected(assemblerFailure(FailureKind::Machine, error));
    };
    const double limitSeconds = deadline.secondsLeft();
    auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return machine(scratch.error());
    const std::filesystem::path source = scratch->path() / "candidate.ptx";
    const std::filesystem::path cubin = scratch->path() / "candidate.cubin";
    if (auto written = files::writeFileAtomic(source, ptx); !written)
        return machine(written.error());
    process::ChildOptions options = compilerSandbox(scratch->path());
    options.command = command;
    options.command.insert(options.command.end(), {"-lineinfo", "-v", "--gpu-name=" + target, "candidate.ptx",
                                                   "-o", "candidate.cubin"});
    auto child = process::ChildProcess::start(options);
    if (!child)
        return machine(child.error());
    const auto status = waitFor(*child, deadline, stop);
    if (!status) {
        WorkerFailure failure = assemblerFailure(FailureKind::Machine, status.error());
        if (status.error().code == ErrorCode::Timeout)
            failure.kind = FailureKind::Timeout;
        else if (status.error().code == ErrorCode::Cancelled)
            failure.kind = FailureKind::Cancelled;
        failure.limitSeconds = limitSeconds;
        return tl::unexpected(failure);
    }
    CompileOutput output;
    output.log = child->standardError().text + child->standardOutput().text;
    if (status->signal != 0) {
        WorkerFailure failure =
            assemblerFailure(FailureKind::Died, {ErrorCode::Protocol, "The assembler died.", {}});
        failure.exit = *status;
        failure.output = output.log;
        return tl::unexpected(failure);
    }
    if (!status->ok())
        return output;
    const auto bytes = files::readFile(cubin, mostCubinBytes);
    if (!bytes)
        return machine(bytes.error());
    output.ok = true;
    output.binary.resize(bytes->size());
    std::memcpy(output.binary.data(), bytes->data(), bytes->size());
    output.metrics = cuda::metricsFromPtxasLog(output.log);
    output.metrics.push_back({"binary_bytes", static_cast<double>(bytes->size()), "B", ""});
    return output;
}

} // namespace klineage::gate
