// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/pythoncompiler.h"

#include "core/device/worker/codec.h"
#include "core/gate/session/sandbox.h"
#include "core/process/scratchfolder.h"

#include <algorithm>
#include <sys/resource.h>

namespace klineage::gate {

using process::Deadline;

namespace {

constexpr int languageProtocolVersion = 1;
constexpr std::size_t mostMessageBytes = std::size_t{128} << 20;
constexpr double languageStartSeconds = 60;

} // namespace

struct PythonCompiler::Process {
    process::ScratchFolder scratch; // before the child, which is gone when it is removed
    process::ChildProcess child;
    process::FramePipe pipe;
    bool introduced = false;
};

PythonCompiler::PythonCompiler(PythonLanguage language)
    : m_language(std::move(language))
{}

PythonCompiler::~PythonCompiler() = default;

std::string PythonCompiler::textAt(const Json &message, const char *key)
{
    const Json value = message.value(key, Json());
    return value.is_string() ? value.get<std::string>() : std::string();
}

std::vector<CompiledLaunch> PythonCompiler::launchesOf(const Json &reply, const Json &asked)
{
    Json said = reply.at("launches");
    if (said.size() != asked.size())
        throw std::invalid_argument("launches");
    for (std::size_t i = 0; i < said.size(); ++i)
        said[i]["kernel"] = asked[i].at("entry");
    return protocol::decode<std::vector<CompiledLaunch>>(said);
}

tl::unexpected<WorkerFailure> PythonCompiler::missing(const std::string &why)
{
    m_process.reset();
    return tl::unexpected(WorkerFailure{
        FailureKind::Unavailable,
        {ErrorCode::Unavailable,
         "Cannot compile " + m_language.name + ": " + why + " Install the package with \"pip install "
             + m_language.package
             + "\" for the python3 on PATH, or name another Python that has it with KLINEAGE_PYTHON.",
         {}},
        {},
        {},
        0});
}

tl::unexpected<WorkerFailure> PythonCompiler::badAnswer() const
{
    return tl::unexpected(WorkerFailure{
        FailureKind::Protocol,
        {ErrorCode::Protocol,
         "The process of " + m_language.name + " sent an answer that does not follow its protocol.",
         {}},
        {},
        {},
        0});
}

tl::unexpected<WorkerFailure> PythonCompiler::end(const Error &error, double limitSeconds)
{
    WorkerFailure failure = compilerFailure(m_process->child, m_process->pipe, error, limitSeconds);
    m_process.reset();
    return tl::unexpected(std::move(failure));
}

WorkerResult<void> PythonCompiler::launch()
{
    const auto machine = [](const Error &error) {
        return tl::unexpected(WorkerFailure{FailureKind::Machine, error, {}, {}, 0});
    };
    if (!m_interpreter) {
        auto found = findInterpreter("compile " + m_language.name);
        if (!found)
            return tl::unexpected(WorkerFailure{FailureKind::Unavailable, found.error(), {}, {}, 0});
        m_interpreter = std::move(*found);
    }
    auto sockets = process::socketPair();
    if (!sockets)
        return machine(sockets.error());
    auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return machine(scratch.error());
    process::ChildOptions options = pythonSandbox(m_interpreter->folders, scratch->path());
    for (process::ResourceLimit &limit : options.limits) {
        if (limit.resource == RLIMIT_DATA)
            limit.value = std::min(limit.value, compileMemoryBytes);
    }
    if (!m_interpreter->userBase.empty())
        options.environment.emplace_back("PYTHONUSERBASE", m_interpreter->userBase);
    options.environment.insert(options.environment.end(), m_language.environment.begin(),
                               m_language.environment.end());
    options.command = {m_interpreter->executable, "-u", "-B", "-c", m_language.script};
    options.inherited = {{sockets->second.get(), protocol::socketFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return machine(child.error());
    m_process = std::make_unique<Process>();
    m_process->scratch = std::move(*scratch);
    m_process->child = std::move(*child);
    m_process->pipe = process::FramePipe(std::move(sockets->first), mostMessageBytes);
    sockets->second.close();
    return {};
}

WorkerResult<nlohmann::json> PythonCompiler::introduction(const std::stop_token &stop)
{
    if (auto launched = m_process ? WorkerResult<void>() : launch(); !launched)
        return tl::unexpected(launched.error());
    if (m_process->introduced)
        return m_hello;
    auto hello = m_process->pipe.receive(Deadline::in(languageStartSeconds), &m_process->child, stop);
    if (!hello)
        return end(hello.error(), languageStartSeconds);
    if (const std::string why = textAt(*hello, "error"); !why.empty()) {
        const std::string executable = m_interpreter->executable;
        m_interpreter.reset(); // another one may be there next time
        return missing(executable + " has no " + m_language.name + " (" + why.substr(0, 300) + ").");
    }
    if (hello->value("version", Json()) != languageProtocolVersion)
        return end(
            {ErrorCode::Protocol, "The process of " + m_language.name + " did not introduce itself.", {}}, 0);
    m_process->introduced = true;
    m_hello = std::move(*hello);
    return m_hello;
}

WorkerResult<nlohmann::json> PythonCompiler::ask(const Json &message, Deadline deadline,
                                                 const std::stop_token &stop)
{
    const double limitSeconds = deadline.secondsLeft();
    if (auto sent = m_process->pipe.send(message, deadline, &m_process->child); !sent)
        return end(sent.error(), limitSeconds);
    auto answer = m_process->pipe.receive(deadline, &m_process->child, stop);
    if (!answer)
        return end(answer.error(), limitSeconds);
    // Whatever the candidate did to the process ends with it.
    m_process.reset();
    (void)launch();
    if (const std::string error = textAt(*answer, "error"); !error.empty())
        return tl::unexpected(WorkerFailure{
            FailureKind::Machine,
            {ErrorCode::Internal, m_language.name + " could not be asked: " + error.substr(0, 1000), {}},
            {},
            {},
            0});
    return std::move(*answer);
}

} // namespace klineage::gate
