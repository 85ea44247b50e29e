// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gateclient.h"

#include "core/process/childprocess.h"
#include "core/process/stopevent.h"
#include "core/trial/requestjson.h"
#include "core/workload/workload.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace klineage::gate {

using nlohmann::json;
using process::ChildProcess;
using process::Deadline;

namespace {

constexpr std::size_t maxLineBytes = std::size_t{64} << 20;
constexpr double startLimitSeconds = 60; // a launcher may queue or ask for a connection
constexpr double graceSeconds =
    120; // what a trial may take beyond its own deadline: oracle, start of workers
constexpr double devicesLimitSeconds = 90;
constexpr double cancelLimitSeconds = 2; // how soon a gate has to say that a trial is over

Error cancelled()
{
    return {ErrorCode::Cancelled, "The trial was cancelled.", {}};
}

std::string lastLines(const std::string &text)
{
    return text.size() > 4000 ? text.substr(text.size() - 4000) : text;
}

/// Lines of JSON over a child's stdin and stdout. After any error the child is to be replaced.
class Connection
{
public:
    [[nodiscard]] static Result<std::unique_ptr<Connection>> open(std::vector<std::string> command)
    {
        process::ChildOptions options;
        options.command = std::move(command);
        options.openStdin = true;
        auto child = ChildProcess::start(options);
        if (!child)
            return tl::unexpected(child.error());
        return std::unique_ptr<Connection>(new Connection(std::move(*child)));
    }
    /// Queues a line; it is sent while receiving.
    void send(const json &message)
    {
        m_outgoing += message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    }
    [[nodiscard]] Result<json> receive(Deadline deadline, const std::stop_token &stop);

private:
    explicit Connection(ChildProcess child)
        : m_child(std::move(child))
    {}
    [[nodiscard]] std::optional<Result<json>> takeLine();
    [[nodiscard]] Error ended();
    [[nodiscard]] bool readSome();
    void writeSome();

    ChildProcess m_child;
    std::string m_outgoing;
    std::string m_incoming;
};

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
    const auto status = m_child.wait(Deadline::in(1));
    m_child.drainStderr();
    Error error{ErrorCode::Protocol, "The gate ended before it answered",
                lastLines(m_child.standardError().text)};
    error.message += status ? ": " + status->describe() + "." : ".";
    return error;
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
            return tl::unexpected(cancelled());
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

Error readErrorEvent(const json &message)
{
    Error error{ErrorCode::Internal, "The gate reported an error that cannot be read.", {}};
    const json in = message.value("error", json::object());
    error.message = in.value("message", error.message);
    error.detail = in.value("detail", "");
    const std::string code = in.value("code", "");
    for (int i = 0; i <= static_cast<int>(ErrorCode::Internal); ++i) {
        if (code == toString(static_cast<ErrorCode>(i)))
            error.code = static_cast<ErrorCode>(i);
    }
    return error;
}

} // namespace

struct GateClient::Private {
    std::filesystem::path program;
    std::vector<std::string> launcher;
    std::unique_ptr<Connection> connection;
    int lastId = 0;

    Status ensureConnected(const std::stop_token &stop);
    Result<Trial> converse(const json &params, double limitSeconds, const std::stop_token &stop,
                           const ProgressCallback &progress);
    bool endTrial();
};

Status GateClient::Private::ensureConnected(const std::stop_token &stop)
{
    if (connection)
        return {};
    ignoreBrokenPipes();
    std::vector<std::string> command = launcher;
    command.push_back(program.string());
    command.push_back("serve");
    auto opened = Connection::open(std::move(command));
    if (!opened)
        return tl::unexpected(opened.error());
    const auto hello = (*opened)->receive(Deadline::in(startLimitSeconds), stop);
    if (!hello)
        return tl::unexpected(hello.error());
    if (hello->value("event", "") != "hello" || hello->value("version", 0) != protocol::serveVersion)
        return fail(ErrorCode::Protocol,
                    "Cannot talk to " + program.string() + ": it is another version of klineage-gate.");
    connection = std::move(*opened);
    return {};
}

/// limitSeconds: for the trial. It begins anew with each sign of life, because a trial may have to wait for others on the device.
Result<Trial> GateClient::Private::converse(const json &params, double limitSeconds,
                                            const std::stop_token &stop, const ProgressCallback &progress)
{
    const int id = ++lastId;
    connection->send({{"id", id}, {"method", "gate"}, {"params", params}});
    Deadline deadline = Deadline::in(limitSeconds);
    for (;;) {
        const auto message = connection->receive(deadline, stop);
        if (!message)
            return tl::unexpected(message.error());
        try {
            if (message->value("id", json()) != id)
                continue; // about an earlier request
            const auto event = message->value("event", "");
            if (event == "error")
                return tl::unexpected(readErrorEvent(*message));
            if (event == "result")
                return message->at("trial").get<Trial>();
            if (event != "progress")
                continue;
            deadline = Deadline::in(limitSeconds);
            if (progress)
                progress({stageFromString(message->at("stage").get<std::string>()).value_or(Stage::Compile),
                          message->at("fraction").get<double>(), message->at("text").get<std::string>()});
        } catch (const std::exception &problem) {
            return fail(ErrorCode::Protocol, "The gate sent an answer that cannot be read.", problem.what());
        }
    }
}

/// Asks the gate to end the last trial; true when it has said so.
bool GateClient::Private::endTrial()
{
    const int id = lastId;
    connection->send({{"id", ++lastId}, {"method", "cancel"}, {"target", id}});
    const Deadline deadline = Deadline::in(cancelLimitSeconds);
    for (;;) {
        const auto message = connection->receive(deadline, {});
        if (!message)
            return false;
        const std::string event = message->value("event", std::string());
        if (message->value("id", json()) == id && (event == "error" || event == "result"))
            return true;
    }
}

GateClient::GateClient(std::filesystem::path gateProgram, std::vector<std::string> launcher)
    : m_d(std::make_unique<Private>())
{
    m_d->program = std::move(gateProgram);
    m_d->launcher = std::move(launcher);
}

GateClient::~GateClient() = default;

Result<Trial> GateClient::run(const GateRequest &request, std::stop_token stop, ProgressCallback progress)
{
    if (stop.stop_requested())
        return tl::unexpected(cancelled());
    const auto workload = workload::readWorkload(request.workloadDirectory);
    if (!workload)
        return tl::unexpected(workload.error());
    if (auto connected = m_d->ensureConnected(stop); !connected)
        return tl::unexpected(connected.error());
    auto trial = m_d->converse(protocol::writeRequest(request, workload::writeWorkload(*workload)),
                               request.deadlineSeconds + graceSeconds, stop, progress);
    // After these the conversation cannot go on; the next run starts another gate.
    if (!trial) {
        const ErrorCode code = trial.error().code;
        const bool isOver = code == ErrorCode::Cancelled && m_d->endTrial();
        if (code == ErrorCode::Protocol || code == ErrorCode::Timeout
            || (code == ErrorCode::Cancelled && !isOver))
            m_d->connection.reset();
    }
    return trial;
}

void GateClient::prepare(const GateRequest &request)
{
    const auto workload = workload::readWorkload(request.workloadDirectory);
    if (workload && m_d->connection)
        m_d->connection->send(
            {{"id", ++m_d->lastId},
             {"method", "prepare"},
             {"params", protocol::writeRequest(request, workload::writeWorkload(*workload))}});
}

bool GateClient::isUp() const
{
    return m_d->connection != nullptr;
}

Result<std::filesystem::path> findGateProgram()
{
    namespace fs = std::filesystem;
    std::error_code error;
    const auto isProgram = [&](const fs::path &path) {
        return fs::is_regular_file(path, error) && ::access(path.c_str(), X_OK) == 0;
    };
    const fs::path own = fs::read_symlink("/proc/self/exe", error);
    for (const fs::path &folder : {own.parent_path(), own.parent_path().parent_path()}) {
        if (!folder.empty() && isProgram(folder / "klineage-gate"))
            return folder / "klineage-gate";
    }
    const char *path = std::getenv("PATH");
    std::string rest = path ? path : "";
    for (std::size_t begin = 0; begin < rest.size();) {
        const std::size_t end = std::min(rest.find(':', begin), rest.size());
        const fs::path candidate = fs::path(rest.substr(begin, end - begin)) / "klineage-gate";
        if (end > begin && isProgram(candidate))
            return candidate;
        begin = end + 1;
    }
    return fail(
        ErrorCode::NotFound,
        "Cannot find klineage-gate: it is neither beside this program nor on PATH. Build the target klineage-gate.");
}

Result<std::vector<DeviceInfo>> queryDevices(const std::filesystem::path &gateProgram, std::stop_token stop)
{
    ignoreBrokenPipes();
    auto opened = Connection::open({gateProgram.string(), "devices"});
    if (!opened)
        return tl::unexpected(opened.error());
    const auto answer = (*opened)->receive(Deadline::in(devicesLimitSeconds), stop);
    if (!answer)
        return tl::unexpected(answer.error());
    return protocol::readDevices(answer->value("devices", json()));
}

} // namespace klineage::gate
