// SPDX-License-Identifier: GPL-3.0-or-later
//
// The main thread reads requests, so that a cancellation or the end of stdin is seen at once; one other thread works.
#include "core/gate/service/serve.h"

#include "core/trial/requestjson.h"

#include <condition_variable>
#include <csignal>
#include <deque>
#include <iostream>
#include <mutex>
#include <thread>
#include <unistd.h>

namespace klineage::gate {

namespace {

using nlohmann::json;

constexpr std::size_t maxLineBytes = std::size_t{64} << 20;

/// Lines on stdout, whole and in order, from any thread.
class Output
{
public:
    void write(const json &message)
    {
        const std::string line = message.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
        const std::lock_guard lock(m_mutex);
        for (std::size_t done = 0; done < line.size();) {
            const ssize_t put = ::write(STDOUT_FILENO, line.data() + done, line.size() - done);
            if (put <= 0 && errno != EINTR)
                return; // the reader is gone; stdin ends too, or a signal comes
            done += put > 0 ? static_cast<std::size_t>(put) : 0;
        }
    }
    void error(const json &id, const Error &error)
    {
        write({{"id", id},
               {"event", "error"},
               {"error",
                {{"code", toString(error.code)}, {"message", error.message}, {"detail", error.detail}}}});
    }

private:
    std::mutex m_mutex;
};

struct Job {
    json id;
    json request;
    std::stop_source stop;
};

class Server
{
public:
    explicit Server(SupervisorOptions options)
        : m_supervisor(std::move(options))
        , m_thread([this] { work(); })
    {}
    ~Server()
    {
        {
            const std::lock_guard lock(m_mutex);
            m_ending = true;
            for (const auto &job : m_jobs)
                job->stop.request_stop();
        }
        m_wake.notify_one();
        m_thread.join();
    }
    void handleLine(const std::string &line);
    Output &output() { return m_output; }

private:
    void work();
    void answer(Job &job);
    void cancel(const json &id, const json &target);
    void prepare(const json &request);

    Output m_output;
    Supervisor m_supervisor;
    std::mutex m_mutex;
    std::condition_variable m_wake;
    std::deque<std::shared_ptr<Job>> m_jobs; ///< front() is being worked on
    bool m_ending = false;
    std::thread m_thread; // last: it uses everything above
};

void Server::cancel(const json &id, const json &target)
{
    bool found = false;
    {
        const std::lock_guard lock(m_mutex);
        for (const auto &job : m_jobs) {
            if (job->id == target) {
                job->stop.request_stop();
                found = true;
            }
        }
    }
    m_output.write({{"id", id}, {"event", "result"}, {"cancelled", found}});
}

void Server::prepare(const json &request)
{
    const auto job = readJob(request.value("params", json()));
    if (!job) {
        m_output.error(request["id"], job.error());
        return;
    }
    m_supervisor.compileAhead(job->request);
    m_output.write({{"id", request["id"]}, {"event", "result"}, {"prepared", true}});
}

void Server::handleLine(const std::string &line)
{
    const json request = json::parse(line, nullptr, false);
    if (!request.is_object() || !request.contains("id") || !request.contains("method")
        || !request["method"].is_string()) {
        m_output.error(
            nullptr,
            {ErrorCode::InvalidInput, "A request is one line of JSON with \"id\" and \"method\".", {}});
        return;
    }
    const auto method = request["method"].get<std::string>();
    if (method == "ping") {
        m_output.write({{"id", request["id"]}, {"event", "result"}, {"pong", true}});
    } else if (method == "cancel") {
        cancel(request["id"], request.value("target", json()));
    } else if (method == "prepare") {
        prepare(request);
    } else if (method == "gate" || method == "devices") {
        auto job = std::make_shared<Job>();
        job->id = request["id"];
        job->request = request;
        {
            const std::lock_guard lock(m_mutex);
            m_jobs.push_back(std::move(job));
        }
        m_wake.notify_one();
    } else {
        m_output.error(request["id"], {ErrorCode::InvalidInput,
                                       "There is no method \"" + method
                                           + "\"; expected gate, prepare, devices, cancel or ping.",
                                       {}});
    }
}

void Server::answer(Job &job)
{
    if (job.request["method"] == "devices") {
        m_output.write({{"id", job.id},
                        {"event", "result"},
                        {"devices", protocol::writeDevices(m_supervisor.devices(job.stop.get_token()))}});
        return;
    }
    const auto request = readJob(job.request.value("params", json()));
    if (!request) {
        m_output.error(job.id, request.error());
        return;
    }
    const auto trial = m_supervisor.gate(*request, job.stop.get_token(), [&](const GateProgress &progress) {
        m_output.write({{"id", job.id},
                        {"event", "progress"},
                        {"stage", toString(progress.stage)},
                        {"fraction", progress.fraction},
                        {"text", progress.text}});
    });
    if (trial)
        m_output.write({{"id", job.id}, {"event", "result"}, {"trial", carryTrial(*trial)}});
    else
        m_output.error(job.id, trial.error());
}

void Server::work()
{
    for (;;) {
        std::shared_ptr<Job> job;
        {
            std::unique_lock lock(m_mutex);
            m_wake.wait(lock, [this] { return m_ending || !m_jobs.empty(); });
            if (m_ending)
                return;
            job = m_jobs.front();
        }
        answer(*job);
        const std::lock_guard lock(m_mutex);
        m_jobs.pop_front();
    }
}

} // namespace

int serve(SupervisorOptions options)
{
    ::signal(SIGPIPE, SIG_IGN);
    Server server(std::move(options));
    server.output().write(
        {{"event", "hello"}, {"version", protocol::serveVersion}, {"gate", KLINEAGE_VERSION}});
    std::string pending;
    char buffer[65536];
    for (;;) {
        const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return 0;
        pending.append(buffer, static_cast<std::size_t>(got));
        std::size_t begin = 0;
        for (std::size_t end = pending.find('\n'); end != std::string::npos;
             end = pending.find('\n', begin)) {
            if (end > begin)
                server.handleLine(pending.substr(begin, end - begin));
            begin = end + 1;
        }
        pending.erase(0, begin);
        if (pending.size() > maxLineBytes) {
            server.output().error(nullptr, {ErrorCode::InvalidInput, "A request is longer than 64 MiB.", {}});
            return 1;
        }
    }
}

} // namespace klineage::gate
