// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/compilersession.h"

#include "core/base/random.h"
#include "core/device/worker/messages.h"
#include "core/gate/session/childisolation.h"
#include "core/gate/session/sandbox.h"

#include <csignal>
#include <nlohmann/json.hpp>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr double compilerStartSeconds = 30;
constexpr std::size_t binaryRoomBytes = std::size_t{64} << 20;

WorkerFailure machineFailure(const Error &error)
{
    return {FailureKind::Machine, error, {}, {}, 0};
}

} // namespace

CompilerSession::CompilerSession(std::vector<std::string> command, CompileCache cache)
    : m_command(std::move(command))
    , m_cache(std::move(cache))
{}

tl::unexpected<WorkerFailure> CompilerSession::end(const Error &error, double limitSeconds)
{
    WorkerFailure failure{FailureKind::Protocol, error, {}, {}, limitSeconds};
    if (error.code == ErrorCode::Timeout)
        failure.kind = FailureKind::Timeout;
    else if (error.code == ErrorCode::Cancelled)
        failure.kind = FailureKind::Cancelled;
    else if (m_process->pipe.ended() && !m_process->pipe.cut()) {
        failure.kind = FailureKind::Died;
        if (const auto status = m_process->child.wait(Deadline::in(2)))
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
    m_process->child.kill();
    m_process->child.drain();
    failure.output = m_process->child.standardOutput().text + m_process->child.standardError().text;
    m_process.reset();
    return tl::unexpected(failure);
}

WorkerResult<void> CompilerSession::ensureStarted(const std::stop_token &stop)
{
    if (m_process)
        return {};
    auto sockets = process::socketPair();
    if (!sockets)
        return tl::unexpected(machineFailure(sockets.error()));
    auto memory = process::SharedMemory::create(binaryRoomBytes);
    if (!memory)
        return tl::unexpected(machineFailure(memory.error()));
    auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return tl::unexpected(machineFailure(scratch.error()));
    process::ChildOptions options = compilerSandbox(scratch->path());
    options.command = m_command;
    options.inherited = {{sockets->second.get(), protocol::socketFd}, {memory->fd(), protocol::memoryFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(machineFailure(child.error()));
    m_process = std::make_unique<Process>();
    m_process->scratch = std::move(*scratch);
    m_process->child = std::move(*child);
    m_process->memory = std::move(*memory);
    m_process->pipe = process::FramePipe(std::move(sockets->first));
    sockets->second.close();
    const auto hello = m_process->pipe.receive(Deadline::in(compilerStartSeconds), &m_process->child, stop);
    if (!hello)
        return end(hello.error(), compilerStartSeconds);
    try {
        if (hello->at("version").get<int>() != protocol::version)
            return end(
                {ErrorCode::Protocol, "The compiler process speaks another version of the protocol.", {}}, 0);
        if (hello->contains("error")) {
            const Error error = protocol::readError(hello->at("error"));
            m_process.reset();
            const auto kind =
                error.code == ErrorCode::Unavailable ? FailureKind::Unavailable : FailureKind::Machine;
            return tl::unexpected(WorkerFailure{kind, error, {}, {}, 0});
        }
        m_compiler = hello->at("compiler").get<std::string>();
    } catch (const std::exception &) {
        return end({ErrorCode::Protocol,
                    "The compiler process did not introduce itself as the protocol demands.",
                    {}},
                   0);
    }
    return {};
}

WorkerResult<CompileOutput> CompilerSession::ask(json request, double limitSeconds,
                                                 const std::stop_token &stop)
{
    const auto unasked = [this] {
        return end({ErrorCode::Protocol, "The compiler process sent something that was not asked for.", {}},
                   0);
    };
    m_process->child.forgetOutput();
    if (!m_process->pipe.quiet())
        return unasked();
    const std::uint64_t id = entropy();
    request["id"] = id;
    const Deadline deadline = Deadline::in(limitSeconds);
    if (auto sent = m_process->pipe.send(request, deadline, &m_process->child); !sent)
        return end(sent.error(), limitSeconds);
    const auto answer = m_process->pipe.receive(deadline, &m_process->child, stop);
    if (!answer)
        return end(answer.error(), limitSeconds);
    if (const auto echoed = answer->find("id");
        echoed == answer->end() || *echoed != json(id) || !m_process->pipe.quiet())
        return unasked();
    try {
        if (answer->contains("error"))
            return tl::unexpected(machineFailure(protocol::readError(answer->at("error"))));
        CompileOutput output = protocol::readCompileOutput(answer->at("compile"));
        if (process::isolationSupport().landlockAbi == 0)
            output.log = withoutForeignText(output.log);
        const auto bytes = answer->at("bytes").get<std::size_t>();
        if (bytes > binaryRoomBytes)
            throw std::invalid_argument("bytes");
        const auto binary = m_process->memory.bytes().first(bytes);
        output.binary.assign(binary.begin(), binary.end());
        return output;
    } catch (const std::exception &) {
        return end({ErrorCode::Protocol,
                    "The compiler process sent an answer that does not follow the protocol.",
                    {}},
                   0);
    }
}

WorkerResult<CompileOutput> CompilerSession::compile(const std::string &source, const std::string &name,
                                                     const std::map<std::string, std::int64_t> &tunables,
                                                     const std::string &target, double limitSeconds,
                                                     const std::stop_token &stop)
{
    if (auto started = ensureStarted(stop); !started)
        return tl::unexpected(started.error());
    const CompileKey key{source, tunables, m_compiler, target};
    if (auto known = m_cache.find(key))
        return std::move(*known);
    auto output = ask({{"source", source},
                       {"name", name},
                       {"tunables", tunables},
                       {"target", target},
                       {"room", binaryRoomBytes}},
                      limitSeconds, stop);
    if (output && output->ok)
        m_cache.store(key, *output);
    return output;
}

} // namespace klineage::gate
