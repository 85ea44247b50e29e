// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/pool/gateclient.h"

#include "core/pool/connection.h"
#include "core/trial/requestjson.h"
#include "core/workload/workload.h"

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

// What a trial may take beyond its own deadline without a word: oracle, start of workers, packages that compile (packagePrepareSeconds).
constexpr double graceSeconds = 330;
constexpr double devicesLimitSeconds = 90;
constexpr double cancelLimitSeconds = 30; // how soon a gate has to say that a trial is over
constexpr double glanceSeconds = 0.5;     // how often a start is looked at

Error cancelled()
{
    return {ErrorCode::Cancelled, "The trial was cancelled.", {}};
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
    GateSpec spec;
    std::unique_ptr<Connection> connection;
    int lastId = 0;
    bool hasAnswered = true; ///< the gate has said the last word on the last trial

    tl::expected<std::unique_ptr<Connection>, GateProblem> connect(
        const std::stop_token &stop, const std::function<void(const std::string &)> &say) const;
    tl::expected<std::vector<DeviceInfo>, GateProblem> askDevices(const std::stop_token &stop);
    Result<json> receive(Deadline deadline, const std::stop_token &stop);
    Result<Trial> converse(const json &params, double limitSeconds, const std::stop_token &stop,
                           const ProgressCallback &progress);
    bool endTrial();
};

tl::expected<std::unique_ptr<Connection>, GateProblem> GateClient::Private::connect(
    const std::stop_token &stop, const std::function<void(const std::string &)> &say) const
{
    const auto problem = [](Error error, bool isFinal = false) {
        return tl::unexpected<GateProblem>(GateProblem{std::move(error), isFinal});
    };
    auto opened = Connection::open(spec, {"serve"});
    if (!opened)
        return problem(opened.error(), true);
    const Deadline deadline = spec.startSeconds > 0 ? Deadline::in(spec.startSeconds) : Deadline::never();
    std::string told;
    for (;;) {
        const auto hello = (*opened)->receive(Deadline::earlier(deadline, Deadline::in(glanceSeconds)), stop);
        if (!hello && hello.error().code == ErrorCode::Timeout && !deadline.passed()) {
            std::string stand = standOf((*opened)->said());
            if (say && stand != told)
                say(told = std::move(stand));
            continue;
        }
        if (!hello && hello.error().code == ErrorCode::Timeout)
            return problem({ErrorCode::Timeout,
                            (spec.name.empty() ? std::string("The gate") : "The gate " + spec.name)
                                + " did not start within "
                                + std::to_string(static_cast<int>(spec.startSeconds)) + " seconds"
                                + (spec.where.empty() ? "." : ": " + spec.where + " hangs."),
                            (*opened)->said()});
        if (!hello)
            return problem(hello.error(), (*opened)->isHopeless());
        if (hello->value("event", "") != "hello" || hello->value("version", 0) != protocol::serveVersion)
            return problem(
                {ErrorCode::Protocol,
                 "Cannot talk to " + (*opened)->name() + ": it is another version of klineage-gate.",
                 {}},
                true);
        return std::move(*opened);
    }
}

/// Which devices it has. A gate that does not tell is taken for one that may have any.
tl::expected<std::vector<DeviceInfo>, GateProblem> GateClient::Private::askDevices(
    const std::stop_token &stop)
{
    const int id = ++lastId;
    connection->send({{"id", id}, {"method", "devices"}});
    const Deadline deadline = Deadline::in(devicesLimitSeconds);
    for (;;) {
        const auto message = connection->receive(deadline, stop);
        if (!message) {
            const bool isFinal = connection->isHopeless();
            connection.reset();
            return tl::unexpected(GateProblem{message.error(), isFinal});
        }
        if (message->value("id", json()) != id)
            continue;
        const auto devices = protocol::readDevices(message->value("devices", json::array()));
        return devices ? *devices : std::vector<DeviceInfo>();
    }
}

/// Answers Timeout when the deadline passes, or when a gate that must give signs of life has given none.
Result<json> GateClient::Private::receive(Deadline deadline, const std::stop_token &stop)
{
    if (spec.silentSeconds <= 0)
        return connection->receive(deadline, stop);
    const Deadline silent = Deadline::in(spec.silentSeconds);
    for (;;) {
        const Deadline glance = Deadline::in(spec.silentSeconds / 3);
        auto message =
            connection->receive(Deadline::earlier(Deadline::earlier(deadline, silent), glance), stop);
        if (message || message.error().code != ErrorCode::Timeout || deadline.passed())
            return message;
        if (silent.passed())
            return fail(ErrorCode::Timeout, "The gate " + spec.name + " (" + spec.where
                                                + ") hangs: it has given no sign of life for "
                                                + std::to_string(static_cast<int>(spec.silentSeconds))
                                                + " seconds.");
        connection->send({{"id", -1}, {"method", "ping"}});
    }
}

/// limitSeconds: for the trial. It begins anew with each sign of life, because a trial may have to wait for others on the device.
Result<Trial> GateClient::Private::converse(const json &params, double limitSeconds,
                                            const std::stop_token &stop, const ProgressCallback &progress)
{
    const int id = ++lastId;
    hasAnswered = false;
    connection->send({{"id", id}, {"method", "gate"}, {"params", params}});
    Deadline deadline = Deadline::in(limitSeconds);
    for (;;) {
        const auto message = receive(deadline, stop);
        if (!message)
            return tl::unexpected(message.error());
        try {
            if (message->value("id", json()) != id)
                continue; // about an earlier request
            const auto event = message->value("event", "");
            hasAnswered = event == "error" || event == "result";
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

/// Asks the gate to end the last trial, unless it has; true when it has said so.
bool GateClient::Private::endTrial()
{
    if (hasAnswered)
        return true;
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
    : GateClient(GateSpec{std::move(launcher), std::move(gateProgram)})
{}

GateClient::GateClient(GateSpec spec)
    : m_d(std::make_unique<Private>())
{
    m_d->spec = std::move(spec);
}

GateClient::~GateClient() = default;

tl::expected<std::vector<DeviceInfo>, GateProblem> GateClient::start(
    bool asksDevices, const std::stop_token &stop, const std::function<void(const std::string &)> &say)
{
    if (!m_d->connection) {
        auto connected = m_d->connect(stop, say);
        if (!connected)
            return tl::unexpected(connected.error());
        m_d->connection = std::move(*connected);
    }
    if (asksDevices)
        return m_d->askDevices(stop);
    return std::vector<DeviceInfo>();
}

Result<Trial> GateClient::run(const GateRequest &request, std::stop_token stop, ProgressCallback progress)
{
    if (stop.stop_requested())
        return tl::unexpected(cancelled());
    const auto workload = workload::readWorkload(request.workloadDirectory);
    if (!workload)
        return tl::unexpected(workload.error());
    if (auto started = start(false, stop, {}); !started)
        return tl::unexpected(started.error().error);
    auto trial = m_d->converse(protocol::writeRequest(request, workload::writeWorkload(*workload)),
                               request.deadlineSeconds + graceSeconds, stop, progress);
    // After these the conversation cannot go on; the next run starts another gate.
    if (!trial) {
        const ErrorCode code = trial.error().code;
        const bool isOver = code == ErrorCode::Cancelled && m_d->endTrial();
        if (m_d->connection->hasEnded() || code == ErrorCode::Protocol || code == ErrorCode::Timeout
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

tl::expected<std::vector<DeviceInfo>, GateProblem> queryDevices(const GateSpec &spec, std::stop_token stop)
{
    const auto failed = [](Error error, bool isFinal) {
        return tl::unexpected<GateProblem>(GateProblem{std::move(error), isFinal});
    };
    auto opened = Connection::open(spec, {"devices"});
    if (!opened)
        return failed(opened.error(), true);
    const auto answer = (*opened)->receive(Deadline::in(devicesLimitSeconds), stop);
    if (!answer)
        return failed(answer.error(), (*opened)->isHopeless());
    auto devices = protocol::readDevices(answer->value("devices", json()));
    if (!devices)
        return failed(devices.error(), true);
    return std::move(*devices);
}

Result<std::vector<DeviceInfo>> queryDevices(const std::filesystem::path &gateProgram, std::stop_token stop)
{
    auto devices = queryDevices(GateSpec{{}, gateProgram}, std::move(stop));
    if (!devices)
        return tl::unexpected(devices.error().error);
    return std::move(*devices);
}

} // namespace klineage::gate
