// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/connection.h"

#include "core/process/stopevent.h"

#include <algorithm>
#include <cerrno>
#include <csignal>

#include <unistd.h>

namespace klineage::gate {

using nlohmann::json;
using process::ChildProcess;
using process::Deadline;

namespace {

constexpr std::size_t maxLineBytes = std::size_t{64} << 20;
constexpr double endSeconds = 5;        // for a job's gate to end when its stdin does
constexpr double lastWordsSeconds = 20; // srun says why a job ended once its output has, in its own time

std::string lastLines(const std::string &text)
{
    return text.size() > 4000 ? text.substr(text.size() - 4000) : text;
}

/// A closed pipe is an error value here, not the end of the application.
void ignoreBrokenPipes()
{
    static const bool once = [] {
        struct sigaction current = {};
        ::sigaction(SIGPIPE, nullptr, &current);
        if (current.sa_handler == SIG_DFL)
            ::signal(SIGPIPE, SIG_IGN);
        return true;
    }();
    (void)once;
}

} // namespace

Result<std::unique_ptr<Connection>> Connection::open(GateSpec spec, const std::vector<std::string> &arguments)
{
    if (spec.program.empty() && spec.shell.empty()) {
        auto program = findGateProgram();
        if (!program)
            return tl::unexpected(program.error());
        spec.program = std::move(*program);
    }
    ignoreBrokenPipes();
    process::ChildOptions options;
    options.command = commandOf(spec, arguments);
    options.openStdin = true;
    auto child = ChildProcess::start(options);
    if (!child)
        return tl::unexpected(child.error());
    return std::unique_ptr<Connection>(new Connection(std::move(spec), std::move(*child)));
}

Connection::Connection(GateSpec spec, ChildProcess child)
    : m_spec(std::move(spec))
    , m_child(std::move(child))
{}

Connection::~Connection()
{
    if (!m_spec.isQueued || m_hasEnded)
        return;
    // Killed outright, srun would leave its place in the queue, or its job, behind.
    m_child.closeStdin();
    if (m_child.wait(Deadline::in(endSeconds)))
        return;
    ::kill(-m_child.pid(), SIGTERM);
    (void)m_child.wait(Deadline::in(endSeconds));
}

void Connection::send(const json &message)
{
    m_outgoing += message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::optional<Result<json>> Connection::takeLine()
{
    const std::size_t end = m_incoming.find('\n');
    if (end == std::string::npos) {
        if (m_incoming.size() > maxLineBytes)
            return fail(ErrorCode::Protocol, "The gate sent a line of more than 64 MiB.");
        return std::nullopt;
    }
    json message = json::parse(m_incoming.begin(), m_incoming.begin() + static_cast<std::ptrdiff_t>(end),
                               nullptr, false);
    const std::string line = m_incoming.substr(0, std::min<std::size_t>(end, 200));
    m_incoming.erase(0, end + 1);
    if (!message.is_object())
        return fail(ErrorCode::Protocol, "The gate sent a line that is no JSON object.", line);
    return Result<json>(std::move(message));
}

Error Connection::ended()
{
    m_hasEnded = true;
    const auto status = m_child.wait(Deadline::in(m_spec.isQueued ? lastWordsSeconds : 1));
    m_child.drainStderr();
    GateProblem problem = explainEnd(m_spec, status && status->signal == 0 ? status->exitCode : 0,
                                     status ? status->describe() : "", lastLines(said()));
    m_isHopeless = problem.isFinal;
    return problem.error;
}

bool Connection::readSome()
{
    char buffer[65536];
    const ssize_t got = ::read(m_child.stdoutFd(), buffer, sizeof buffer);
    if (got > 0)
        m_incoming.append(buffer, static_cast<std::size_t>(got));
    return got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR));
}

void Connection::writeSome()
{
    const ssize_t put = ::write(m_child.stdinFd(), m_outgoing.data(), m_outgoing.size());
    if (put > 0)
        m_outgoing.erase(0, static_cast<std::size_t>(put));
    else if (put < 0 && errno == EPIPE)
        m_outgoing.clear(); // its end shows on stdout
}

Result<json> Connection::receive(Deadline deadline, const std::stop_token &stop)
{
    const process::StopEvent stopEvent(stop);
    for (;;) {
        if (auto line = takeLine())
            return std::move(*line);
        if (stop.stop_requested())
            return fail(ErrorCode::Cancelled, "The trial was cancelled.");
        if (deadline.passed())
            return fail(ErrorCode::Timeout, "The gate did not answer in time.");
        std::vector<pollfd> fds{{m_child.stdoutFd(), POLLIN, 0},
                                {stopEvent.fd(), POLLIN, 0},
                                {m_outgoing.empty() ? -1 : m_child.stdinFd(), POLLOUT, 0}};
        m_child.appendPollFds(fds);
        fds[3].fd = -1; // stdout is parsed here, not captured
        ::poll(fds.data(), fds.size(), deadline.pollTimeoutMs());
        m_child.drainStderr();
        if (fds[2].revents != 0)
            writeSome();
        if (fds[0].revents != 0 && !readSome())
            return tl::unexpected(ended());
    }
}

} // namespace klineage::gate
