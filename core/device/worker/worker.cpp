// SPDX-License-Identifier: GPL-3.0-or-later
//
// One request, one answer, in order; an answer repeats the "id" of its request. Bulk bytes travel through the shared memory at
// offsets that the supervisor names. An answer is {"ok": true, …} or {"error": {…}}; ErrorCode::InvalidInput is the candidate's
// fault, everything else is the machine's.
#include "core/device/worker/worker.h"

#include "core/device/worker/messages.h"
#include "core/process/framepipe.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <cstdio>
#include <functional>

namespace klineage::gate {

namespace {

using nlohmann::json;

json failure(const Error &error)
{
    return {{"error", protocol::write(error)}};
}

json answer(const Status &status)
{
    return status ? json{{"ok", true}} : failure(status.error());
}

template <typename T>
json answer(const Result<T> &result, const char *key)
{
    return result ? json{{"ok", true}, {key, *result}} : failure(result.error());
}

/// Names of the operations to what does them.
class Worker
{
public:
    explicit Worker(std::unique_ptr<Backend> backend)
        : m_backend(std::move(backend))
        , m_memory(process::SharedMemory::adopt(FileDescriptor(protocol::memoryFd)))
    {}
    json perform(const json &request);
    json hello() const
    {
        return {{"hello", "klineage-worker"},
                {"version", protocol::version},
                {"facts", protocol::write(m_backend->deviceFacts())},
                {"environment", protocol::write(m_backend->environment())},
                {"cache_bytes", m_backend->cacheBytes()}};
    }

private:
    json load(const json &request);
    json copy(const json &request, bool upload);
    json addPlan(const json &request);
    json time(const json &request);
    json installHelpers(const json &request);
    json counters(const json &request);
    json sample(const json &request);
    Result<std::span<std::byte>> region(const json &request);

    std::unique_ptr<Backend> m_backend;
    process::SharedMemory m_memory;
};

Result<std::span<std::byte>> Worker::region(const json &request)
{
    const auto offset = request.at("offset").get<std::size_t>();
    const auto bytes = request.at("bytes").get<std::size_t>();
    if (auto mapped = m_memory.ensure(offset + bytes); !mapped)
        return tl::unexpected(mapped.error());
    return m_memory.bytes().subspan(offset, bytes);
}

json Worker::load(const json &request)
{
    auto binary = region(request);
    if (!binary)
        return failure(binary.error());
    // A private copy: the driver may keep pointers into it.
    const std::vector<std::byte> image(binary->begin(), binary->end());
    CompileOutput output;
    const auto module =
        m_backend->load(image, request.at("source").get<std::string>(),
                        request.at("tunables").get<std::map<std::string, std::int64_t>>(), output);
    json reply = answer(module, "module");
    reply["compile"] = protocol::write(output);
    return reply;
}

json Worker::copy(const json &request, bool upload)
{
    const auto bytes = region(request);
    if (!bytes)
        return failure(bytes.error());
    const auto buffer = request.at("buffer").get<BufferId>();
    return answer(upload ? m_backend->upload(buffer, *bytes) : m_backend->download(buffer, *bytes));
}

json Worker::addPlan(const json &request)
{
    return answer(m_backend->addPlan(request.at("module").get<ModuleId>(),
                                     protocol::readPlan(request.at("plan")),
                                     protocol::readSets(request.at("sets"))),
                  "subject");
}

/// The fingerprints of all samples lie one after the other in the shared memory.
json Worker::time(const json &request)
{
    json samples = json::array();
    const auto prints = region(request);
    if (!prints)
        return failure(prints.error());
    std::size_t at = 0;
    for (const json &entry : request.at("sequence")) {
        const auto sample = m_backend->time(protocol::readTimedRun(entry));
        if (!sample) {
            json reply = failure(sample.error());
            reply["subject"] = entry.at(0);
            return reply;
        }
        samples.push_back(protocol::write(*sample));
        const auto bytes = std::as_bytes(std::span(sample->prints));
        if (bytes.size() > prints->size() - at)
            return failure(
                {ErrorCode::Internal, "There is no room for what the sample left in its outputs.", {}});
        std::copy(bytes.begin(), bytes.end(), prints->begin() + static_cast<std::ptrdiff_t>(at));
        at += bytes.size();
    }
    return {{"ok", true}, {"samples", std::move(samples)}};
}

json Worker::installHelpers(const json &request)
{
    const auto binary = region(request);
    return binary ? answer(m_backend->installHelpers(*binary)) : failure(binary.error());
}

json Worker::counters(const json &request)
{
    const auto metrics = m_backend->counters(request.at("subject").get<SubjectId>(),
                                             request.at("sets").get<std::vector<std::string>>());
    return metrics ? json{{"ok", true}, {"metrics", protocol::write(*metrics)}} : failure(metrics.error());
}

json Worker::sample(const json &request)
{
    const auto binary = region(request);
    if (!binary)
        return failure(binary.error());
    const auto lines = m_backend->sample(request.at("subject").get<SubjectId>(), *binary);
    return lines ? json{{"ok", true},
                        {"metrics", protocol::write(lines->metrics)},
                        {"instructions", protocol::write(lines->instructions)}}
                 : failure(lines.error());
}

json Worker::perform(const json &request)
{
    const auto op = request.at("op").get<std::string>();
    if (op == "load")
        return load(request);
    if (op == "unload")
        return m_backend->unload(request.at("module").get<ModuleId>()), answer(Status());
    if (op == "read_global") {
        const auto bytes = region(request);
        return bytes ? answer(m_backend->readGlobal(request.at("module").get<ModuleId>(),
                                                    request.at("name").get<std::string>(), *bytes))
                     : failure(bytes.error());
    }
    if (op == "allocate")
        return answer(m_backend->allocate(request.at("bytes").get<std::size_t>()), "buffer");
    if (op == "release")
        return m_backend->release(request.at("buffer").get<BufferId>()), answer(Status());
    if (op == "upload" || op == "download")
        return copy(request, op == "upload");
    if (op == "add_plan")
        return addPlan(request);
    if (op == "prime")
        return answer(
            m_backend->prime(request.at("module").get<ModuleId>(), protocol::readPlan(request.at("plan"))));
    if (op == "seal")
        return answer(m_backend->seal(request.at("times").get<bool>()), "sealed");
    if (op == "add_reference")
        return answer(m_backend->addReference(protocol::readReferenceCall(request.at("call")),
                                              protocol::readSets(request.at("sets"))),
                      "subject");
    if (op == "copy")
        return answer(m_backend->copy(protocol::readRanges(request.at("ranges"))));
    if (op == "install_helpers")
        return installHelpers(request);
    if (op == "rebind")
        return answer(m_backend->rebind(request.at("subject").get<SubjectId>(),
                                        protocol::readSets(request.at("sets"))));
    if (op == "set_fills")
        return answer(m_backend->setFills(request.at("subject").get<SubjectId>(),
                                          protocol::readFills(request.at("fills"))));
    if (op == "set_outputs")
        return answer(m_backend->setOutputs(request.at("subject").get<SubjectId>(),
                                            protocol::readOutputs(request.at("outputs"))));
    if (op == "remove_subject")
        return m_backend->removeSubject(request.at("subject").get<SubjectId>()), answer(Status());
    if (op == "subject_info") {
        const auto subject = request.at("subject").get<SubjectId>();
        return {{"ok", true},
                {"version", m_backend->subjectVersion(subject)},
                {"metrics", protocol::write(m_backend->subjectMetrics(subject))}};
    }
    if (op == "run")
        return answer(
            m_backend->run(request.at("subject").get<SubjectId>(), request.at("set").get<std::size_t>()));
    if (op == "time")
        return time(request);
    if (op == "counters")
        return counters(request);
    if (op == "prepare_sampling")
        return answer(m_backend->prepareSampling());
    if (op == "sample")
        return sample(request);
    if (op == "energy") {
        const auto reading =
            m_backend->energy(protocol::readTimedRun(request.at("run")), request.at("seconds").get<double>());
        return reading ? json{{"ok", true}, {"energy", protocol::write(*reading)}} : failure(reading.error());
    }
    if (op == "environment")
        return {{"ok", true}, {"environment", protocol::write(m_backend->environment())}};
    return failure({ErrorCode::Protocol, "The worker does not know the operation \"" + op + "\".", {}});
}

} // namespace

int runWorker(kernel::Surface surface)
{
    using process::Deadline;
    process::FramePipe pipe{FileDescriptor(protocol::socketFd)};
    try {
        auto backend = surface == kernel::Surface::Cuda ? openCudaBackend() : openOpenClBackend();
        if (!backend) {
            json hello = failure(backend.error());
            hello["version"] = protocol::version;
            return pipe.send(hello, Deadline::in(10)) ? 0 : 1;
        }
        Worker worker(std::move(*backend));
        if (!pipe.send(worker.hello(), Deadline::in(10)))
            return 1;
        for (;;) {
            const auto request = pipe.receive(Deadline::never());
            if (!request)
                return pipe.ended() ? 0 : 1;
            json reply = worker.perform(*request);
            reply["id"] = request->at("id");
            if (!pipe.send(reply, Deadline::in(60)))
                return 1;
        }
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "klineage-gate worker: %s\n", problem.what());
        return 1;
    }
}

} // namespace klineage::gate
