// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/workersession.h"

#include "core/base/random.h"
#include "core/gate/check/parallel.h"
#include "core/gate/session/sandbox.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sys/resource.h>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr double quickLimitSeconds = 20;      // allocations, copies, descriptions
constexpr double slowestTransfer = 64e6;      // bytes a second: a machine that is busy, or swaps
constexpr double primeLimitSeconds = 60;      // PoCL compiles and links a function for each size
constexpr double referenceLimitSeconds = 120; // vendor libraries compile and try out what they propose
constexpr std::size_t answerLimitBytes = std::size_t{16} << 20;
constexpr std::size_t initialMemoryBytes = std::size_t{1} << 20;

double transferLimitSeconds(std::size_t bytes)
{
    return quickLimitSeconds + static_cast<double>(bytes) / slowestTransfer;
}

} // namespace

WorkerResult<std::unique_ptr<WorkerSession>> WorkerSession::start(const std::vector<std::string> &command,
                                                                  kernel::DeviceKind device,
                                                                  double limitSeconds,
                                                                  const std::stop_token &stop,
                                                                  Confinement confinement)
{
    auto session = launch(command, device, confinement);
    if (!session)
        return session;
    const auto ready = (*session)->await(limitSeconds, stop);
    if (ready)
        return session;
    if (confinement == Confinement::Full && device == kernel::DeviceKind::Cuda
        && ready.error().kind == FailureKind::Unavailable && process::isolationSupport().landlockAbi > 0) {
        // A CUDA kernel runs on the device and cannot open files, so a driver that will not start under Landlock is let off it;
        // the trial records what was enforced.
        auto again = start(command, device, limitSeconds, stop, Confinement::WithoutFiles);
        if (again)
            return again;
    }
    return tl::unexpected(ready.error());
}

WorkerResult<void> WorkerSession::await(double limitSeconds, const std::stop_token &stop)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    if (m_introduced)
        return {};
    m_stop = stop;
    return readHello(limitSeconds);
}

WorkerResult<std::unique_ptr<WorkerSession>> WorkerSession::launch(const std::vector<std::string> &command,
                                                                   kernel::DeviceKind device,
                                                                   Confinement confinement)
{
    const auto failed = [](const Error &error) {
        return tl::unexpected(WorkerFailure{FailureKind::Machine, error, {}, {}, 0});
    };
    auto sockets = process::socketPair();
    if (!sockets)
        return failed(sockets.error());
    auto memory = process::SharedMemory::create(initialMemoryBytes);
    if (!memory)
        return failed(memory.error());
    auto scratch = process::ScratchFolder::create(cacheDirectory()); // kernels of the CPU are compiled there
    if (!scratch)
        return failed(scratch.error());
    process::ChildOptions options = workerSandbox(device, scratch->path());
    process::IsolationSupport used = process::isolationSupport();
    if (confinement == Confinement::LimitsOnly) {
        options.isolation.reset();
        used = {};
    } else if (confinement == Confinement::WithoutFiles) {
        options.isolation->confinesFiles = false;
        used.landlockAbi = 0;
    }
    options.command = command;
    options.inherited = {{sockets->second.get(), protocol::socketFd}, {memory->fd(), protocol::memoryFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return failed(child.error());
    std::unique_ptr<WorkerSession> session(new WorkerSession);
    session->m_device = device;
    session->m_scratch = std::move(*scratch);
    session->m_child = std::move(*child);
    session->m_memory = std::move(*memory);
    session->m_pipe = process::FramePipe(std::move(sockets->first), answerLimitBytes);
    sockets->second.close(); // so that the worker's death shows as end of file
    session->m_isolation = process::describe(used);
    return session;
}

WorkerResult<void> WorkerSession::readHello(double limitSeconds)
{
    const auto hello = m_pipe.receive(Deadline::in(limitSeconds), &m_child, m_stop);
    if (!hello)
        return endOf(hello.error(), limitSeconds);
    try {
        if (protocol::decode<int>(hello->at("version")) != protocol::version)
            return end(FailureKind::Protocol,
                       {ErrorCode::Protocol, "The worker speaks another version of the protocol.", {}});
        if (hello->contains("error")) {
            const Error error = protocol::decode<Error>(hello->at("error"));
            return end(error.code == ErrorCode::Unavailable ? FailureKind::Unavailable : FailureKind::Machine,
                       error);
        }
        auto said = protocol::decode<protocol::WorkerHello>(*hello);
        m_facts = std::move(said.facts);
        m_environment = std::move(said.environment);
        m_environment.facts["isolation"] = m_isolation;
        m_cacheBytes = said.cacheBytes;
    } catch (const std::exception &) {
        return end(FailureKind::Protocol,
                   {ErrorCode::Protocol, "The worker did not introduce itself as the protocol demands.", {}});
    }
    m_introduced = true;
    return {};
}

WorkerResult<void> WorkerSession::clear()
{
    while (!m_subjects.empty()) {
        if (auto done = removeSubject(m_subjects.back()); !done)
            return done;
    }
    while (!m_modules.empty()) {
        if (auto done = unload(m_modules.back()); !done)
            return done;
    }
    while (!m_buffers.empty()) {
        if (auto done = release(m_buffers.back()); !done)
            return done;
    }
    m_downloaded = {};
    return {};
}

std::string WorkerSession::finish(double limitSeconds)
{
    if (m_failure)
        return m_failure->output;
    m_pipe = process::FramePipe(); // its end is the worker's sign to stop
    (void)m_child.wait(Deadline::in(limitSeconds));
    (void)end(FailureKind::Machine, {ErrorCode::Protocol, "The worker was told to end.", {}});
    return m_failure->output;
}

void WorkerSession::discard()
{
    if (!m_failure)
        (void)end(FailureKind::Machine, {ErrorCode::Protocol, "The worker was discarded.", {}});
}

void WorkerSession::beginTrial(std::stop_token stop, Deadline deadline)
{
    m_stop = std::move(stop);
    m_deadline = deadline;
    m_child.forgetOutput();
}

std::string WorkerSession::output()
{
    m_child.drain();
    std::string text;
    for (const auto *stream : {&m_child.standardOutput(), &m_child.standardError()}) {
        text += stream->text;
        if (stream->droppedBytes > 0)
            text += "\n[" + std::to_string(stream->droppedBytes) + " more bytes of output were cut]\n";
    }
    return text;
}

tl::unexpected<WorkerFailure> WorkerSession::end(FailureKind kind, Error error, double limitSeconds)
{
    WorkerFailure failure{kind, std::move(error), {}, {}, limitSeconds};
    if (kind == FailureKind::Died) {
        // The socket closes a moment before the process can be waited for.
        if (const auto status = m_child.wait(Deadline::in(2)))
            failure.exit = *status;
        // It cannot do that to itself, where calls are filtered.
        const bool full = failure.exit && failure.exit->peakBytes > (compileMemoryBytes + m_bufferBytes) / 2;
        if (failure.exit && failure.exit->signal == SIGKILL && process::isolationSupport().seccomp && !full) {
            failure.kind = FailureKind::Killed;
            failure.error = {
                ErrorCode::Internal,
                "The worker was killed from outside, by the system when memory ran out or by somebody.",
                {}};
        }
    }
    m_child.kill();
    failure.output = output();
    m_failure = failure;
    return tl::unexpected(failure);
}

tl::unexpected<WorkerFailure> WorkerSession::endOf(const Error &error, double limitSeconds)
{
    switch (error.code) {
    case ErrorCode::Timeout:
        return end(FailureKind::Timeout, error, limitSeconds);
    case ErrorCode::Cancelled:
        return end(FailureKind::Cancelled, error);
    default:
        break;
    }
    // Ending in the middle of a message is a broken protocol; ending between two is a death.
    return end(m_pipe.ended() && !m_pipe.cut() ? FailureKind::Died : FailureKind::Protocol, error);
}

WorkerResult<json> WorkerSession::call(json request, double limitSeconds)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    const auto unasked = [this] {
        return end(FailureKind::Protocol,
                   {ErrorCode::Protocol, "The worker sent something that was not asked for.", {}});
    };
    if (!m_pipe.quiet())
        return unasked();
    const std::uint64_t id = entropy();
    request["id"] = id;
    const double seconds = std::min(limitSeconds, m_deadline.secondsLeft());
    const Deadline deadline = Deadline::in(seconds);
    if (auto sent = m_pipe.send(request, deadline, &m_child); !sent)
        return endOf(sent.error(), seconds);
    auto answer = m_pipe.receive(deadline, &m_child, m_stop);
    if (!answer)
        return endOf(answer.error(), seconds);
    if (const auto echoed = answer->find("id");
        echoed == answer->end() || *echoed != json(id) || !m_pipe.quiet())
        return unasked();
    return std::move(*answer);
}

template <typename Operation>
WorkerResult<typename Operation::Reply> WorkerSession::ask(const Operation &operation, double limitSeconds)
{
    json request = protocol::encode(operation);
    request["op"] = Operation::name;
    const auto begin = std::chrono::steady_clock::now();
    const auto answer = call(std::move(request), limitSeconds);
    OperationTime &spent = m_operations[Operation::name];
    ++spent.count;
    spent.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    if (!answer)
        return tl::unexpected(answer.error());
    try {
        if (answer->contains("error")) {
            const auto error = protocol::decode<Error>(answer->at("error"));
            if (error.code == ErrorCode::InvalidInput) // a value: what it means depends on the operation
                return tl::unexpected(WorkerFailure{FailureKind::Candidate, error, {}, {}, 0});
            if (error.code == ErrorCode::Unavailable)
                return tl::unexpected(WorkerFailure{FailureKind::Unavailable, error, {}, {}, 0});
            return end(FailureKind::Machine, error);
        }
        if (!answer->at("ok").template get<bool>())
            throw std::invalid_argument("ok");
        return protocol::decode<typename Operation::Reply>(*answer);
    } catch (const std::exception &) {
        return end(FailureKind::Protocol,
                   {ErrorCode::Protocol, "The worker sent an answer that does not follow the protocol.", {}});
    }
}

template <typename Operation>
WorkerResult<void> WorkerSession::order(const Operation &operation, double limitSeconds)
{
    const auto done = ask(operation, limitSeconds);
    return done ? WorkerResult<void>() : tl::unexpected(done.error());
}

WorkerResult<protocol::Region> WorkerSession::handOver(std::span<const std::byte> bytes)
{
    const auto room = staging(bytes.size());
    if (!room)
        return tl::unexpected(room.error());
    std::copy(bytes.begin(), bytes.end(), room->begin());
    return protocol::Region{0, bytes.size()};
}

WorkerResult<LoadedModule> WorkerSession::load(std::span<const std::byte> binary, const std::string &source,
                                               const std::map<std::string, std::int64_t> &tunables,
                                               double limitSeconds)
{
    const auto region = handOver(binary);
    if (!region)
        return tl::unexpected(region.error());
    auto loaded = ask(protocol::Load{*region, source, tunables}, limitSeconds);
    if (loaded && loaded->module)
        m_modules.push_back(*loaded->module);
    return loaded;
}

WorkerResult<void> WorkerSession::unload(ModuleId module)
{
    std::erase(m_modules, module);
    return order(protocol::Unload{module}, quickLimitSeconds);
}

WorkerResult<std::vector<std::byte>> WorkerSession::readGlobal(ModuleId module, const std::string &name,
                                                               std::size_t bytes)
{
    const auto room = staging(bytes);
    if (!room)
        return tl::unexpected(room.error());
    if (auto read = order(protocol::ReadGlobal{module, name, {0, bytes}}, quickLimitSeconds); !read)
        return tl::unexpected(read.error());
    return std::vector<std::byte>(room->begin(), room->end());
}

WorkerResult<void> WorkerSession::allowMemory(std::size_t bytes)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    if (!kernel::traitsOf(m_device).isHost)
        return {};
    constexpr std::uint64_t copies =
        3; // the device's, the one that travels, and what the allocator leaves between
    m_bufferBytes += copies * bytes;
    if (auto raised = m_child.raiseLimit({RLIMIT_DATA, compileMemoryBytes + m_bufferBytes}); !raised)
        return end(FailureKind::Died, raised.error());
    return {};
}

WorkerResult<BufferId> WorkerSession::allocate(std::size_t bytes, bool hidden)
{
    if (auto allowed = allowMemory(bytes); !allowed)
        return tl::unexpected(allowed.error());
    const auto made = ask(protocol::Allocate{bytes, hidden}, quickLimitSeconds);
    if (!made)
        return tl::unexpected(made.error());
    return m_buffers.emplace_back(made->buffer);
}

WorkerResult<BufferId> WorkerSession::scatter(std::size_t rangeBytes, std::size_t placeBytes,
                                              const std::vector<std::size_t> &places)
{
    const auto made = ask(protocol::Scatter{rangeBytes, placeBytes, places}, quickLimitSeconds);
    if (!made)
        return tl::unexpected(made.error());
    return m_buffers.emplace_back(made->buffer);
}

WorkerResult<void> WorkerSession::release(BufferId buffer)
{
    std::erase(m_buffers, buffer);
    return order(protocol::Release{buffer}, quickLimitSeconds);
}

WorkerResult<std::string> WorkerSession::share(BufferId buffer)
{
    auto shared = ask(protocol::Share{buffer}, quickLimitSeconds);
    return shared ? WorkerResult<std::string>(std::move(shared->handle)) : tl::unexpected(shared.error());
}

WorkerResult<BufferId> WorkerSession::adopt(const std::string &handle, std::size_t bytes)
{
    const auto made = ask(protocol::Adopt{handle, bytes}, quickLimitSeconds);
    if (!made)
        return tl::unexpected(made.error());
    return m_buffers.emplace_back(made->buffer);
}

WorkerResult<std::span<std::byte>> WorkerSession::staging(std::size_t bytes)
{
    if (m_failure)
        return tl::unexpected(*m_failure);
    if (auto mapped = m_memory.ensure(bytes); !mapped)
        return end(FailureKind::Machine, mapped.error());
    return m_memory.bytes().first(bytes);
}

WorkerResult<void> WorkerSession::uploadStaged(BufferId buffer, std::size_t bytes, std::size_t offset)
{
    return order(protocol::Upload{buffer, offset, {0, bytes}}, transferLimitSeconds(bytes));
}

WorkerResult<std::span<const std::byte>> WorkerSession::download(BufferId buffer, std::size_t bytes,
                                                                 std::size_t offset)
{
    const auto room = staging(bytes);
    if (!room)
        return tl::unexpected(room.error());
    if (m_downloaded.size() < bytes) {
        m_downloaded = {}; // what it holds is not worth a copy
        m_downloaded.resize(bytes);
    }
    if (auto done = order(protocol::Download{buffer, offset, {0, bytes}}, transferLimitSeconds(bytes)); !done)
        return tl::unexpected(done.error());
    parallelCopy(m_downloaded.data(), *room);
    return std::span<const std::byte>(m_downloaded).first(bytes);
}

WorkerResult<SubjectId> WorkerSession::addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                               const std::vector<BufferSet> &sets)
{
    return added(ask(protocol::AddPlan{module, plan, sets}, quickLimitSeconds));
}

WorkerResult<void> WorkerSession::prime(ModuleId module, const kernel::ResolvedPlan &plan)
{
    return order(protocol::Prime{module, plan}, primeLimitSeconds);
}

WorkerResult<bool> WorkerSession::seal(bool times)
{
    const auto done = ask(protocol::Seal{times}, primeLimitSeconds);
    if (!done)
        return tl::unexpected(done.error());
    m_sealed = done->sealed;
    return m_sealed;
}

WorkerResult<SubjectId> WorkerSession::addReference(const ReferenceCall &reference,
                                                    const std::vector<BufferSet> &sets)
{
    return added(ask(protocol::AddReference{reference, sets}, referenceLimitSeconds));
}

WorkerResult<SubjectId> WorkerSession::added(const WorkerResult<protocol::NewSubject> &made)
{
    if (!made)
        return tl::unexpected(made.error());
    return m_subjects.emplace_back(made->subject);
}

WorkerResult<void> WorkerSession::removeSubject(SubjectId subject)
{
    std::erase(m_subjects, subject);
    m_looked.erase(subject);
    return order(protocol::RemoveSubject{subject}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::rebind(SubjectId subject, const std::vector<BufferSet> &sets)
{
    return order(protocol::Rebind{subject, sets}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::setFills(SubjectId subject, const FillSets &fills)
{
    return order(protocol::SetFills{subject, fills}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::setGuards(const Guards &guards)
{
    return order(protocol::SetGuards{guards}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::setContents(std::vector<std::vector<CopyRange>> sets)
{
    return order(protocol::SetContents{std::move(sets)}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::setOutputs(SubjectId subject, const OutputSets &outputs)
{
    m_looked[subject] = {outputs.sets.size(), outputs.tilesPerSet()};
    return order(protocol::SetOutputs{subject, outputs}, quickLimitSeconds);
}

std::size_t WorkerSession::printsOf(const TimedRun &run) const
{
    const auto looked = m_looked.find(run.subject);
    if (looked == m_looked.end() || run.fillWord == 0)
        return 0;
    return run.setsConcerned(looked->second.sets) * looked->second.tiles;
}

WorkerResult<void> WorkerSession::copy(const std::vector<CopyRange> &ranges)
{
    return order(protocol::Copy{ranges}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::installHelpers(std::span<const std::byte> binary)
{
    const auto region = handOver(binary);
    return region ? order(protocol::InstallHelpers{*region}, quickLimitSeconds)
                  : tl::unexpected(region.error());
}

WorkerResult<SubjectInfo> WorkerSession::subjectInfo(SubjectId subject)
{
    return ask(protocol::AskSubject{subject}, quickLimitSeconds);
}

WorkerResult<void> WorkerSession::run(SubjectId subject, std::size_t set, double limitSeconds)
{
    auto done = order(protocol::Run{subject, set}, limitSeconds);
    if (!done && done.error().kind == FailureKind::Candidate)
        return end(FailureKind::Candidate,
                   done.error().error); // a failed launch can leave the device context unusable
    return done;
}

WorkerResult<std::vector<TimedSample>> WorkerSession::time(const std::vector<TimedRun> &sequence,
                                                           double limitSeconds)
{
    std::size_t prints = 0;
    for (const TimedRun &run : sequence)
        prints += printsOf(run);
    const std::size_t bytes = prints * sizeof(TilePrint);
    const auto room = staging(bytes);
    if (!room)
        return tl::unexpected(room.error());
    auto timed = ask(protocol::Time{sequence, {0, bytes}}, limitSeconds);
    if (!timed && timed.error().kind == FailureKind::Candidate)
        return end(FailureKind::Candidate, timed.error().error);
    if (!timed)
        return tl::unexpected(timed.error());
    if (timed->samples.size() != sequence.size())
        return end(
            FailureKind::Protocol,
            {ErrorCode::Protocol, "The worker sent another number of samples than was asked for.", {}});
    std::size_t at = 0;
    for (std::size_t i = 0; i < sequence.size(); ++i) {
        timed->samples[i].ns /= std::max(1, sequence[i].repeats);
        auto &own = timed->samples[i].prints;
        own.resize(printsOf(sequence[i]));
        const std::size_t size = own.size() * sizeof(TilePrint);
        if (size > 0)
            std::memcpy(own.data(), room->data() + at, size);
        at += size;
    }
    return std::move(timed->samples);
}

WorkerResult<EnergyReading> WorkerSession::energy(const TimedRun &run, double seconds)
{
    const auto read = ask(protocol::ReadEnergy{run, seconds}, quickLimitSeconds + 2 * seconds);
    return read ? WorkerResult<EnergyReading>(read->energy) : tl::unexpected(read.error());
}

WorkerResult<std::vector<Metric>> WorkerSession::counters(SubjectId subject,
                                                          const std::vector<std::string> &sets,
                                                          double limitSeconds)
{
    auto read = ask(protocol::ReadCounters{subject, sets}, limitSeconds);
    return read ? WorkerResult<std::vector<Metric>>(std::move(read->metrics)) : tl::unexpected(read.error());
}

WorkerResult<void> WorkerSession::prepareSampling(double limitSeconds)
{
    return order(protocol::PrepareSampling{}, limitSeconds);
}

WorkerResult<SampledCode> WorkerSession::sample(SubjectId subject, std::span<const std::byte> binary,
                                                double limitSeconds)
{
    const auto region = handOver(binary);
    if (!region)
        return tl::unexpected(region.error());
    auto read = ask(protocol::Sample{subject, *region}, limitSeconds);
    if (!read)
        return tl::unexpected(read.error());
    return SampledCode{std::move(read->instructions), std::move(read->metrics)};
}

WorkerResult<Environment> WorkerSession::environment()
{
    auto read = ask(protocol::AskEnvironment{}, quickLimitSeconds);
    return read ? WorkerResult<Environment>(std::move(read->environment)) : tl::unexpected(read.error());
}

} // namespace klineage::gate
