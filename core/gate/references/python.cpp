// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/references/python.h"

#include "core/device/worker/messages.h"
#include "core/gate/check/outputjudge.h"
#include "core/gate/session/interpreter.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <sys/resource.h>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr int protocolVersion = 1;
constexpr std::size_t maxMessageBytes = std::size_t{1} << 20;
constexpr double runLimitSeconds = 60;
constexpr double versionsLimitSeconds = 20;
constexpr std::size_t alignment = 256;
constexpr const char *script =
#include "referencescript.inc"
    ;

} // namespace

bool isPythonProvider(const std::string &provider)
{
    return std::find(pythonProviders.begin(), pythonProviders.end(), provider) != pythonProviders.end();
}

std::string PythonSession::words()
{
    m_child.drain();
    return lastWords(m_child.standardError().text);
}

tl::unexpected<WorkerFailure> PythonSession::failed(FailureKind kind, Error error)
{
    error.message += words();
    m_child.kill();
    m_failure = WorkerFailure{kind, std::move(error), {}, m_child.standardError().text, 0};
    return tl::unexpected(*m_failure);
}

WorkerResult<std::unique_ptr<PythonSession>> PythonSession::start(const std::string &provider,
                                                                  double limitSeconds,
                                                                  const std::stop_token &stop)
{
    auto session = std::make_unique<PythonSession>();
    session->m_provider = provider;
    session->m_stop = stop;
    const auto unavailable = [&](const Error &error) {
        return tl::unexpected(WorkerFailure{FailureKind::Unavailable, error, {}, {}, 0});
    };
    auto sockets = process::socketPair();
    auto memory = process::SharedMemory::create(alignment);
    if (!sockets || !memory)
        return unavailable(sockets ? memory.error() : sockets.error());
    session->m_memory = std::move(*memory);
    process::ChildOptions options;
    options.command = {pythonInterpreter(), "-u", "-B", "-c", script, provider};
    options.limits = {{RLIMIT_CORE, 0}, {RLIMIT_NOFILE, 4096}};
    options.inherited = {{sockets->second.get(), protocol::socketFd},
                         {session->m_memory.fd(), protocol::memoryFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return unavailable({ErrorCode::Unavailable,
                            "Cannot use " + provider + ": " + child.error().message
                                + " It needs python3 on PATH, or KLINEAGE_PYTHON.",
                            {}});
    session->m_child = std::move(*child);
    sockets->second.close();
    session->m_pipe = process::FramePipe(std::move(sockets->first), maxMessageBytes);
    const auto hello = session->m_pipe.receive(Deadline::in(limitSeconds), &session->m_child, stop);
    if (!hello)
        return session->failed(hello.error().code == ErrorCode::Timeout ? FailureKind::Timeout
                                                                        : FailureKind::Died,
                               {ErrorCode::Unavailable,
                                "Cannot use " + provider + ": " + pythonInterpreter()
                                    + " did not introduce itself: " + hello.error().message,
                                {}});
    if (hello->value("version", json()) != protocolVersion)
        return session->failed(FailureKind::Protocol, {ErrorCode::Protocol,
                                                       "Cannot use " + provider + ": " + pythonInterpreter()
                                                           + " sent something that is no introduction.",
                                                       {}});
    if (hello->contains("error")) {
        const json &why = hello->at("error");
        return session->failed(
            FailureKind::Unavailable,
            {ErrorCode::Unavailable,
             "Cannot use " + provider + ": " + (why.is_string() ? why.get<std::string>() : "") + ".",
             {}});
    }
    const json text = hello->value("text", json());
    session->m_version = text.is_string() ? text.get<std::string>() : provider;
    return session;
}

WorkerResult<json> PythonSession::ask(const json &request, double limitSeconds)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    const Deadline deadline = Deadline::in(limitSeconds);
    Result<json> answer = json();
    if (auto sent = m_pipe.send(request, deadline, &m_child); !sent)
        answer = tl::unexpected(sent.error());
    else
        answer = m_pipe.receive(deadline, &m_child, m_stop);
    if (!answer) {
        const auto code = answer.error().code;
        const auto kind = code == ErrorCode::Timeout     ? FailureKind::Timeout
                          : code == ErrorCode::Cancelled ? FailureKind::Cancelled
                          : m_pipe.ended()               ? FailureKind::Died
                                                         : FailureKind::Protocol;
        return failed(kind,
                      {code,
                       "The python3 process of " + m_provider + " gave no answer: " + answer.error().message,
                       {}});
    }
    if (const auto error = answer->find("error"); error != answer->end() && error->is_string())
        return tl::unexpected(WorkerFailure{
            FailureKind::Unavailable,
            {ErrorCode::Unavailable,
             "Cannot use " + m_provider + ": " + error->get<std::string>().substr(0, 1000) + ".",
             {}},
            {},
            {},
            0});
    if (answer->value("ok", json()) != true)
        return failed(FailureKind::Protocol,
                      {ErrorCode::Protocol,
                       "The python3 process of " + m_provider + " sent something that is no answer.",
                       {}});
    return std::move(*answer);
}

WorkerResult<void> PythonSession::begin(CaseInstancePtr instance, std::size_t sets, std::stop_token stop)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    m_stop = std::move(stop);
    m_instance = std::move(instance);
    m_offsets.clear();
    m_ways.clear();
    json tensors = json::array();
    std::size_t total = 0;
    for (const HostTensor &tensor : m_instance->tensors) {
        const std::size_t bytes = tensor.elements() * kernel::sizeOf(tensor.dtype);
        const bool input = tensor.role == workload::Role::Input;
        if (!input)
            m_offsets[tensor.name] = total;
        tensors.push_back({{"name", tensor.name},
                           {"role", input ? "input" : "output"},
                           {"dtype", toString(tensor.dtype)},
                           {"shape", tensor.shape},
                           {"offset", total},
                           {"bytes", bytes}});
        total += (bytes + alignment - 1) / alignment * alignment;
    }
    if (auto mapped = m_memory.ensure(total); !mapped)
        return failed(FailureKind::Machine, mapped.error());
    for (std::size_t i = 0; i < tensors.size(); ++i) {
        const auto &bytes = m_instance->tensors[i].bytes; // outputs have none
        if (m_instance->tensors[i].role == workload::Role::Input)
            std::copy(bytes.begin(), bytes.end(),
                      m_memory.bytes().begin() + tensors[i].at("offset").get<std::ptrdiff_t>());
    }
    const auto done = ask({{"op", "begin"}, {"tensors", tensors}, {"memory", total}, {"sets", sets}},
                          packagePrepareSeconds);
    if (!done)
        return tl::unexpected(done.error());
    return {};
}

WorkerResult<int> PythonSession::add(const ReferenceCall &call)
{
    const auto answer =
        ask({{"op", "add"}, {"call", {{"op", call.op}, {"buffers", call.buffers}, {"sizes", call.sizes}}}},
            packagePrepareSeconds);
    if (!answer)
        return tl::unexpected(answer.error());
    const auto subject = answer->find("subject");
    if (subject == answer->end() || !subject->is_number_integer())
        return failed(FailureKind::Protocol,
                      {ErrorCode::Protocol,
                       "The python3 process of " + m_provider + " sent something that is no answer.",
                       {}});
    const int number = subject->get<int>();
    if (const auto way = answer->find("way"); way != answer->end() && way->is_string())
        m_ways[number] = way->get<std::string>().substr(0, 200);
    return number;
}

std::string PythonSession::version(int subject) const
{
    const auto way = m_ways.find(subject);
    return way == m_ways.end() ? m_version : m_version + ": " + way->second;
}

WorkerResult<std::optional<std::string>> PythonSession::check(int subject)
{
    // Nothing of an earlier run may pass for this one's result: all ones are NaN in every floating-point type.
    for (const auto &[name, offset] : m_offsets) {
        for (const HostTensor &tensor : m_instance->tensors) {
            if (tensor.name == name)
                std::fill_n(m_memory.bytes().begin() + static_cast<std::ptrdiff_t>(offset),
                            tensor.elements() * kernel::sizeOf(tensor.dtype), std::byte{0xff});
        }
    }
    if (const auto ran = ask({{"op", "run"}, {"subject", subject}}, runLimitSeconds); !ran)
        return tl::unexpected(ran.error());
    OutputJudge judge(*m_instance);
    for (const HostTensor &tensor : m_instance->tensors) {
        const auto offset = m_offsets.find(tensor.name);
        if (offset == m_offsets.end())
            continue;
        const auto bytes =
            m_memory.bytes().subspan(offset->second, tensor.elements() * kernel::sizeOf(tensor.dtype));
        const auto check = judge.compare(tensor, bytes);
        if (check.failure == OutputCheck::Failure::Selection)
            return std::optional(elementName(tensor.name, tensor.shape, check.index) + " is "
                                 + std::to_string(static_cast<std::int64_t>(check.got)) + ", " + check.why
                                 + ".");
        if (!check.ok())
            return std::optional(elementName(tensor.name, tensor.shape, check.index) + " is "
                                 + std::to_string(check.got) + ", expected " + std::to_string(check.expected)
                                 + "; " + std::to_string(check.mismatches) + " of "
                                 + std::to_string(check.elements) + " elements differ, relative L2 "
                                 + std::to_string(check.relativeL2) + ".");
    }
    return std::optional<std::string>();
}

WorkerResult<TimedSample> PythonSession::time(int subject, const TimedRun &run, double limitSeconds)
{
    const auto answer =
        ask({{"op", "time"}, {"subject", subject}, {"first", run.first}, {"repeats", run.repeats}},
            limitSeconds + runLimitSeconds);
    if (!answer)
        return tl::unexpected(answer.error());
    const auto ns = answer->find("ns");
    if (ns == answer->end() || !ns->is_number() || !(ns->get<double>() > 0)
        || !std::isfinite(ns->get<double>()))
        return failed(FailureKind::Protocol,
                      {ErrorCode::Protocol, "The python3 process of " + m_provider + " sent no time.", {}});
    return TimedSample{ns->get<double>(), 0};
}

void PythonSession::end()
{
    m_instance.reset();
    if (!m_failure)
        (void)ask({{"op", "end"}},
                  runLimitSeconds); // a failure ends the session, and the next trial starts another
}

WorkerResult<PythonSession *> PythonSessions::session(const std::string &provider, double limitSeconds,
                                                      const std::stop_token &stop)
{
    auto &slot = m_sessions[provider];
    if (!slot || !slot->alive()) {
        auto started = PythonSession::start(provider, limitSeconds, stop);
        if (!started)
            return tl::unexpected(started.error());
        slot = std::move(*started);
    }
    return slot.get();
}

void PythonSessions::end()
{
    for (auto &[provider, session] : m_sessions) {
        if (session)
            session->end();
    }
}

Result<std::map<std::string, std::string>> installedPythonReferences()
{
    process::ChildOptions options;
    options.command = {pythonInterpreter(), "-B", "-c", script, "--versions"};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    const auto ended = child->wait(Deadline::in(versionsLimitSeconds));
    if (!ended)
        return tl::unexpected(ended.error());
    const json found = json::parse(child->standardOutput().text, nullptr, false);
    if (!ended->ok() || !found.is_object() || !found.contains("packages"))
        return fail(ErrorCode::Unavailable, pythonInterpreter() + " ended with " + ended->describe() + ": "
                                                + lastLine(child->standardError().text));
    std::map<std::string, std::string> versions;
    for (const auto &[provider, version] : found.at("packages").items()) {
        if (version.is_string())
            versions[provider] = version.get<std::string>();
    }
    return versions;
}

} // namespace klineage::gate
