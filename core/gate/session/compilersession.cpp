// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/compilersession.h"

#include "core/base/random.h"
#include "core/device/worker/operations.h"
#include "core/gate/session/childisolation.h"
#include "core/gate/session/sandbox.h"

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

/// What such a language compiles is kept as its own, so nothing is kept here.
class CompilerSession::Cuda : public LanguageProcess
{
public:
    explicit Cuda(CompilerSession &session)
        : m_session(session)
    {}

    [[nodiscard]] WorkerResult<std::string> version(const std::stop_token &stop) override
    {
        if (auto started = m_session.ensureStarted(stop); !started)
            return tl::unexpected(started.error());
        return m_session.compilerOf(kernel::Surface::Cuda.language().word);
    }

    [[nodiscard]] WorkerResult<CompileOutput> compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop) override
    {
        if (auto started = m_session.ensureStarted(stop); !started)
            return tl::unexpected(started.error());
        return m_session.ask(request, limitSeconds, stop);
    }

private:
    CompilerSession &m_session;
};

CompilerSession::CompilerSession(std::vector<std::string> command, CompileCache cache)
    : m_command(std::move(command))
    , m_cache(std::move(cache))
    , m_cuda(std::make_unique<Cuda>(*this))
{}

tl::unexpected<WorkerFailure> CompilerSession::end(const Error &error, double limitSeconds)
{
    WorkerFailure failure = compilerFailure(m_process->child, m_process->pipe, error, limitSeconds);
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
        if (protocol::decode<int>(hello->at("version")) != protocol::version)
            return end(
                {ErrorCode::Protocol, "The compiler process speaks another version of the protocol.", {}}, 0);
        m_compilers.clear();
        for (const auto &[language, said] : hello->at("compilers").items()) {
            if (said.contains("error"))
                m_compilers[language] = tl::unexpected(protocol::decode<Error>(said.at("error")));
            else
                m_compilers[language] = said.at("compiler").get<std::string>();
        }
    } catch (const std::exception &) {
        return end({ErrorCode::Protocol,
                    "The compiler process did not introduce itself as the protocol demands.",
                    {}},
                   0);
    }
    return {};
}

WorkerResult<std::string> CompilerSession::compilerOf(const std::string &language)
{
    const auto found = m_compilers.find(language);
    if (found != m_compilers.end() && found->second)
        return *found->second;
    const Error error =
        found == m_compilers.end()
            ? Error{ErrorCode::Unavailable, "There is no compiler for '" + language + "' here.", {}}
            : found->second.error();
    m_process.reset(); // the next one may find what was missing
    return tl::unexpected(
        WorkerFailure{error.code == ErrorCode::Unavailable ? FailureKind::Unavailable : FailureKind::Machine,
                      error,
                      {},
                      {},
                      0});
}

LanguageProcess *CompilerSession::processOf(const std::string &language)
{
    const auto known = m_processes.find(language);
    return known != m_processes.end()
               ? known->second.get()
               : m_processes.emplace(language, makeLanguageProcess(language, *m_cuda)).first->second.get();
}

WorkerResult<CompileOutput> CompilerSession::ask(const CompileRequest &wanted, double limitSeconds,
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
    json request = protocol::encode(protocol::Compile{wanted, binaryRoomBytes});
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
            return tl::unexpected(machineFailure(protocol::decode<Error>(answer->at("error"))));
        auto [output, bytes] = protocol::decode<protocol::Compile::Reply>(*answer);
        if (process::isolationSupport().landlockAbi == 0)
            output.log = withoutForeignText(output.log);
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

WorkerResult<CompileOutput> CompilerSession::compile(const CompileRequest &request, double limitSeconds,
                                                     const std::stop_token &stop)
{
    LanguageProcess *own = processOf(request.language);
    if (auto started = own ? WorkerResult<void>() : ensureStarted(stop); !started)
        return tl::unexpected(started.error());
    const auto version = own ? own->version(stop) : compilerOf(request.language);
    if (!version)
        return tl::unexpected(version.error());
    const CompileKey key{request.source, request.tunables, *version, request.target, request.launches};
    if (m_storing.valid())
        m_storing.get();
    if (auto known = m_cache.find(key))
        return std::move(*known);
    auto output = own ? own->compile(request, limitSeconds, stop) : ask(request, limitSeconds, stop);
    if (output && output->ok && m_cache.worksAhead())
        m_cache.store(key, *output); // somebody waits for it
    else if (output && output->ok)
        m_storing = std::async(std::launch::async,
                               [cache = m_cache, key, stored = *output] { cache.store(key, stored); });
    return output;
}

} // namespace klineage::gate
