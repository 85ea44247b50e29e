// SPDX-License-Identifier: GPL-3.0-or-later
//
// One request, one answer, in order. An answer is {"ok": true, …} or a failure().
#include "core/device/worker/worker.h"

#include "core/device/worker/answering.h"
#include "core/device/worker/operations.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <functional>

namespace klineage::gate::protocol {

namespace {

using nlohmann::json;

template <typename Reply>
json answer(const Result<Reply> &result)
{
    if (!result)
        return failure(result.error());
    json out = encode(*result);
    out["ok"] = true;
    return out;
}

Result<Done> done(const Status &status)
{
    return status ? Result<Done>(Done{}) : tl::unexpected(status.error());
}

/// What the backend made, as the reply that holds it.
template <typename Reply, typename T>
Result<Reply> made(Result<T> result)
{
    return result ? Result<Reply>(Reply{std::move(*result)}) : tl::unexpected(result.error());
}

/// The operations, each bound to what the backend does for it.
class Worker
{
public:
    explicit Worker(std::unique_ptr<Backend> backend);
    json answerRequest(const json &request);
    json hello() const
    {
        json out =
            encode(WorkerHello{m_backend->deviceFacts(), m_backend->environment(), m_backend->cacheBytes()});
        out["hello"] = "klineage-worker";
        out["version"] = version;
        return out;
    }

private:
    /// act: Result<Operation::Reply>(const Operation &)
    template <typename Operation, typename Act>
    void on(Act act)
    {
        m_operations[Operation::name] = [act](const json &request) -> json {
            const Result<typename Operation::Reply> result = act(decode<Operation>(request));
            return answer(result);
        };
    }
    void bindModules();
    void bindBuffers();
    void bindSubjects();
    void bindMeasurements();
    Result<std::span<std::byte>> bytesOf(const Region &region);

    std::unique_ptr<Backend> m_backend;
    process::SharedMemory m_memory;
    std::map<std::string, std::function<json(const json &)>> m_operations;
};

Worker::Worker(std::unique_ptr<Backend> backend)
    : m_backend(std::move(backend))
    , m_memory(process::SharedMemory::adopt(FileDescriptor(memoryFd)))
{
    bindModules();
    bindBuffers();
    bindSubjects();
    bindMeasurements();
}

Result<std::span<std::byte>> Worker::bytesOf(const Region &region)
{
    if (auto mapped = m_memory.ensure(region.offset + region.bytes); !mapped)
        return tl::unexpected(mapped.error());
    return m_memory.bytes().subspan(region.offset, region.bytes);
}

void Worker::bindModules()
{
    on<Load>([this](const Load &op) -> Result<Load::Reply> {
        const auto binary = bytesOf(op.binary);
        if (!binary)
            return tl::unexpected(binary.error());
        // A private copy: the driver may keep pointers into it.
        const std::vector<std::byte> image(binary->begin(), binary->end());
        Load::Reply reply;
        const auto module = m_backend->load(image, op.source, op.tunables, reply.output);
        if (module)
            reply.module = *module;
        else if (module.error().code == ErrorCode::InvalidInput)
            reply.error = module.error();
        else
            return tl::unexpected(module.error());
        return reply;
    });
    on<Unload>([this](const Unload &op) {
        m_backend->unload(op.module);
        return Done{};
    });
    on<ReadGlobal>([this](const ReadGlobal &op) -> Result<Done> {
        const auto bytes = bytesOf(op.to);
        return bytes ? done(m_backend->readGlobal(op.module, op.variable, *bytes))
                     : tl::unexpected(bytes.error());
    });
    on<InstallHelpers>([this](const InstallHelpers &op) -> Result<Done> {
        const auto bytes = bytesOf(op.binary);
        return bytes ? done(m_backend->installHelpers(*bytes)) : tl::unexpected(bytes.error());
    });
}

void Worker::bindBuffers()
{
    on<Allocate>([this](const Allocate &op) {
        return made<NewBuffer>(op.hidden ? m_backend->allocateHidden(op.bytes)
                                         : m_backend->allocate(op.bytes));
    });
    on<Scatter>([this](const Scatter &op) {
        return made<NewBuffer>(m_backend->scatter(op.rangeBytes, op.placeBytes, op.places));
    });
    on<Release>([this](const Release &op) {
        m_backend->release(op.buffer);
        return Done{};
    });
    on<Upload>([this](const Upload &op) -> Result<Done> {
        const auto bytes = bytesOf(op.from);
        return bytes ? done(m_backend->upload(op.buffer, op.offset, *bytes)) : tl::unexpected(bytes.error());
    });
    on<Download>([this](const Download &op) -> Result<Done> {
        const auto bytes = bytesOf(op.to);
        return bytes ? done(m_backend->download(op.buffer, op.offset, *bytes))
                     : tl::unexpected(bytes.error());
    });
    on<Share>([this](const Share &op) { return made<Share::Reply>(m_backend->share(op.buffer)); });
    on<Adopt>([this](const Adopt &op) { return made<NewBuffer>(m_backend->adopt(op.handle, op.bytes)); });
    on<Copy>([this](const Copy &op) { return done(m_backend->copy(op.ranges)); });
}

void Worker::bindSubjects()
{
    on<AddPlan>([this](const AddPlan &op) {
        return made<NewSubject>(m_backend->addPlan(op.module, op.plan, op.sets));
    });
    on<Prime>([this](const Prime &op) { return done(m_backend->prime(op.module, op.plan)); });
    on<Seal>([this](const Seal &op) { return made<Seal::Reply>(m_backend->seal(op.times)); });
    on<AddReference>([this](const AddReference &op) {
        return made<NewSubject>(m_backend->addReference(op.call, op.sets));
    });
    on<RemoveSubject>([this](const RemoveSubject &op) {
        m_backend->removeSubject(op.subject);
        return Done{};
    });
    on<Rebind>([this](const Rebind &op) { return done(m_backend->rebind(op.subject, op.sets)); });
    on<SetFills>([this](const SetFills &op) { return done(m_backend->setFills(op.subject, op.fills)); });
    on<SetContents>([this](const SetContents &op) { return done(m_backend->setContents(op.sets)); });
    on<SetGuards>([this](const SetGuards &op) { return done(m_backend->setGuards(op.guards)); });
    on<SetOutputs>(
        [this](const SetOutputs &op) { return done(m_backend->setOutputs(op.subject, op.outputs)); });
    on<AskSubject>([this](const AskSubject &op) {
        return AskSubject::Reply{m_backend->subjectVersion(op.subject),
                                 m_backend->subjectMetrics(op.subject)};
    });
    on<Run>([this](const Run &op) { return done(m_backend->run(op.subject, op.set)); });
}

void Worker::bindMeasurements()
{
    on<Time>([this](const Time &op) -> Result<Time::Reply> {
        const auto room = bytesOf(op.prints);
        if (!room)
            return tl::unexpected(room.error());
        Time::Reply reply;
        std::size_t at = 0;
        for (const TimedRun &run : op.sequence) {
            const auto sample = m_backend->time(run);
            if (!sample)
                return tl::unexpected(sample.error());
            const auto prints = std::as_bytes(std::span(sample->prints));
            if (prints.size() > room->size() - at)
                return tl::unexpected(Error{
                    ErrorCode::Internal, "There is no room for what the sample left in its outputs.", {}});
            std::copy(prints.begin(), prints.end(), room->begin() + static_cast<std::ptrdiff_t>(at));
            at += prints.size();
            reply.samples.push_back(*sample);
        }
        return reply;
    });
    on<ReadEnergy>([this](const ReadEnergy &op) {
        return made<ReadEnergy::Reply>(m_backend->energy(op.run, op.seconds));
    });
    on<ReadCounters>([this](const ReadCounters &op) {
        return made<ReadCounters::Reply>(m_backend->counters(op.subject, op.sets));
    });
    on<PrepareSampling>([this](const PrepareSampling &) { return done(m_backend->prepareSampling()); });
    on<Sample>([this](const Sample &op) -> Result<Sample::Reply> {
        const auto binary = bytesOf(op.binary);
        if (!binary)
            return tl::unexpected(binary.error());
        auto code = m_backend->sample(op.subject, *binary);
        if (!code)
            return tl::unexpected(code.error());
        return Sample::Reply{std::move(code->metrics), std::move(code->instructions)};
    });
    on<AskEnvironment>(
        [this](const AskEnvironment &) { return AskEnvironment::Reply{m_backend->environment()}; });
}

json Worker::answerRequest(const json &request)
{
    const auto name = request.at("op").get<std::string>();
    const auto operation = m_operations.find(name);
    if (operation == m_operations.end())
        return failure({ErrorCode::Protocol, "The worker does not know the operation \"" + name + "\".", {}});
    return operation->second(request);
}

} // namespace

} // namespace klineage::gate::protocol

namespace klineage::gate {

int runWorker(kernel::DeviceKind device)
{
    process::FramePipe pipe{FileDescriptor(protocol::socketFd)};
    auto backend = device == kernel::DeviceKind::Cuda ? openCudaBackend() : openOpenClBackend();
    if (!backend) {
        nlohmann::json hello = protocol::failure(backend.error());
        hello["version"] = protocol::version;
        return pipe.send(hello, process::Deadline::in(10)) ? 0 : 1;
    }
    protocol::Worker worker(std::move(*backend));
    return protocol::answerRequests(pipe, "worker", worker.hello(), [&worker](const nlohmann::json &request) {
        return worker.answerRequest(request);
    });
}

} // namespace klineage::gate
