// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/rawbytes.h"
#include "core/device/worker/operations.h"
#include "core/gate/session/sandbox.h"
#include "core/process/childprocess.h"
#include "core/process/framepipe.h"
#include "core/process/scratchfolder.h"
#include "core/process/sharedmemory.h"

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

namespace klineage::gate {

enum class FailureKind {
    Candidate,   ///< the device or its compiler refused or failed what the candidate asked for
    Timeout,     ///< no answer in time
    Died,        ///< the worker ended
    Protocol,    ///< the worker sent something that is no answer
    Unavailable, ///< no device, driver or library
    Machine,     ///< the device or the system failed where it should not
    Cancelled,
    Killed, ///< the worker was killed from outside: by the system when memory ran out, or by somebody
};

/// Why an operation of the worker did not succeed.
struct WorkerFailure {
    FailureKind kind = FailureKind::Machine;
    Error error;
    std::optional<process::ExitStatus> exit; ///< Died
    std::string output;                      ///< what the worker printed, capped
    double limitSeconds = 0;                 ///< Timeout
};
template <typename T>
using WorkerResult = tl::expected<T, WorkerFailure>;

/// How often something was asked of a worker, and how long that took in all.
struct OperationTime {
    std::size_t count = 0;
    double seconds = 0;
};
using OperationTimes = std::map<std::string, OperationTime>; ///< by the operation's name

/// A module that did not compile or load has no id, and says why.
using LoadedModule = protocol::Load::Reply;
using SubjectInfo = protocol::AskSubject::Reply;

enum class Confinement {
    Full,         ///< the sandbox of workers
    WithoutFiles, ///< without Landlock: for drivers that need a file which the sandbox does not know
    LimitsOnly, ///< resource limits alone: for a worker that a debugging tool of the vendor starts, whose candidate runs on a GPU
};

/// A worker process and the conversation with it. Every answer is checked; after a timeout, a death, a protocol error, a machine
/// failure or a failed launch the process is killed, and every later call fails the same way. One thread.
///
/// Each request carries a random number, which its answer must repeat. What arrives without having been asked for is a protocol
/// error, also when nobody is waiting for an answer.
class WorkerSession
{
public:
    /// Starts the command (program and arguments) and waits for its hello.
    [[nodiscard]] static WorkerResult<std::unique_ptr<WorkerSession>> start(
        const std::vector<std::string> &command, kernel::DeviceKind device, double limitSeconds,
        const std::stop_token &stop, Confinement confinement = Confinement::Full);
    /// Starts the command without waiting: nothing but await() may be called before that has succeeded.
    [[nodiscard]] static WorkerResult<std::unique_ptr<WorkerSession>> launch(
        const std::vector<std::string> &command, kernel::DeviceKind device,
        Confinement confinement = Confinement::Full);
    /// Waits for the hello; at once when it has been read already.
    [[nodiscard]] WorkerResult<void> await(double limitSeconds, const std::stop_token &stop);

    /// Removes every subject, module and buffer that this session made: the end of a trial.
    [[nodiscard]] WorkerResult<void> clear();
    /// Lets the process end by itself and returns what it printed; kills it when it does not end in time.
    [[nodiscard]] std::string finish(double limitSeconds);
    /// Kills the process: after a candidate that may have damaged it.
    void discard();

    /// Stop token and deadline of the calls that follow, until the next call of this. What the worker printed so far is forgotten.
    void beginTrial(std::stop_token stop, process::Deadline deadline);
    /// Another deadline for the calls that follow.
    void setDeadline(process::Deadline deadline) { m_deadline = deadline; }
    [[nodiscard]] bool alive() const { return !m_failure; }
    [[nodiscard]] pid_t pid() const { return m_child.pid(); }
    /// Since it was started.
    [[nodiscard]] const OperationTimes &operations() const { return m_operations; }

    /// Where its OpenCL compiler keeps what it built; the process can write there.
    [[nodiscard]] std::filesystem::path programs() const { return programFolder(m_scratch.path()); }

    [[nodiscard]] const kernel::Bindings &facts() const { return m_facts; }
    [[nodiscard]] const Environment &helloEnvironment() const { return m_environment; }
    [[nodiscard]] std::size_t cacheBytes() const { return m_cacheBytes; }

    [[nodiscard]] WorkerResult<LoadedModule> load(std::span<const std::byte> binary,
                                                  const std::string &source,
                                                  const std::map<std::string, std::int64_t> &tunables,
                                                  double limitSeconds);
    [[nodiscard]] WorkerResult<void> unload(ModuleId module);
    /// FailureKind::Candidate when the module has no such variable.
    [[nodiscard]] WorkerResult<std::vector<std::byte>> readGlobal(ModuleId module, const std::string &name,
                                                                  std::size_t bytes);
    /// hidden: at an address that cannot be told from those of other buffers; such a buffer is not shared.
    [[nodiscard]] WorkerResult<BufferId> allocate(std::size_t bytes, bool hidden = false);
    /// A buffer that has memory at some places alone (timing/copyplaces.h); only of devices on which packsBuffers().
    [[nodiscard]] WorkerResult<BufferId> scatter(std::size_t rangeBytes, std::size_t placeBytes,
                                                 const std::vector<std::size_t> &places);
    [[nodiscard]] WorkerResult<void> release(BufferId buffer);
    /// Memory to compose an upload in; valid until the next call of this or download().
    [[nodiscard]] WorkerResult<std::span<std::byte>> staging(std::size_t bytes);
    [[nodiscard]] WorkerResult<void> uploadStaged(BufferId buffer, std::size_t bytes, std::size_t offset = 0);
    /// A copy that the worker can no longer change; valid until the next call of this, or of clear().
    [[nodiscard]] WorkerResult<std::span<const std::byte>> download(BufferId buffer, std::size_t bytes,
                                                                    std::size_t offset = 0);
    /// Whether buffers that are made together are one, with memory where they lie alone (scatter()): of devices that are not the host.
    [[nodiscard]] bool packsBuffers() const { return !kernel::traitsOf(m_device).isHost; }
    /// What another process needs to open a buffer; Unavailable where the device offers no such thing.
    [[nodiscard]] WorkerResult<std::string> share(BufferId buffer);
    /// Opens a buffer that another worker shares. It stays that worker's: release() closes it.
    [[nodiscard]] WorkerResult<BufferId> adopt(const std::string &handle, std::size_t bytes);
    [[nodiscard]] WorkerResult<SubjectId> addPlan(ModuleId module, const kernel::ResolvedPlan &plan,
                                                  const std::vector<BufferSet> &sets);
    /// Compiles a plan without running it; a bad one is FailureKind::Candidate.
    [[nodiscard]] WorkerResult<void> prime(ModuleId module, const kernel::ResolvedPlan &plan);
    /// After it only what was primed can run, and the process can do nothing but compute: see process::sealProcess(). times: whether time()
    /// is to come. Whether the device and the system could do that.
    [[nodiscard]] WorkerResult<bool> seal(bool times);
    [[nodiscard]] bool sealed() const { return m_sealed; }
    [[nodiscard]] WorkerResult<SubjectId> addReference(const ReferenceCall &call,
                                                       const std::vector<BufferSet> &sets);
    [[nodiscard]] WorkerResult<void> removeSubject(SubjectId subject);
    [[nodiscard]] WorkerResult<void> rebind(SubjectId subject, const std::vector<BufferSet> &sets);
    [[nodiscard]] WorkerResult<void> setFills(SubjectId subject, const FillSets &fills);
    [[nodiscard]] WorkerResult<void> setGuards(const Guards &guards);
    [[nodiscard]] WorkerResult<void> setContents(std::vector<std::vector<CopyRange>> sets);
    [[nodiscard]] WorkerResult<void> setOutputs(SubjectId subject, const OutputSets &outputs);
    [[nodiscard]] WorkerResult<void> copy(const std::vector<CopyRange> &ranges);
    [[nodiscard]] WorkerResult<void> installHelpers(std::span<const std::byte> binary);
    [[nodiscard]] WorkerResult<SubjectInfo> subjectInfo(SubjectId subject);
    [[nodiscard]] WorkerResult<void> run(SubjectId subject, std::size_t set, double limitSeconds);
    /// One sample for each, measured in this order.
    [[nodiscard]] WorkerResult<std::vector<TimedSample>> time(const std::vector<TimedRun> &sequence,
                                                              double limitSeconds);
    [[nodiscard]] WorkerResult<EnergyReading> energy(const TimedRun &run, double seconds);
    [[nodiscard]] WorkerResult<Environment> environment();
    // See Backend. Unavailable leaves the session as it is.
    [[nodiscard]] WorkerResult<std::vector<Metric>> counters(SubjectId subject,
                                                             const std::vector<std::string> &sets,
                                                             double limitSeconds);
    [[nodiscard]] WorkerResult<void> prepareSampling(double limitSeconds);
    [[nodiscard]] WorkerResult<SampledCode> sample(SubjectId subject, std::span<const std::byte> binary,
                                                   double limitSeconds);

private:
    WorkerSession() = default;
    [[nodiscard]] WorkerResult<nlohmann::json> call(nlohmann::json request, double limitSeconds);
    /// Asks for an operation of the protocol. An answer that is not its reply is a protocol failure.
    template <typename Operation>
    [[nodiscard]] WorkerResult<typename Operation::Reply> ask(const Operation &operation,
                                                              double limitSeconds);
    /// The same, of an operation that brings nothing back.
    template <typename Operation>
    [[nodiscard]] WorkerResult<void> order(const Operation &operation, double limitSeconds);
    /// Puts bytes where the worker finds them.
    [[nodiscard]] WorkerResult<protocol::Region> handOver(std::span<const std::byte> bytes);
    [[nodiscard]] WorkerResult<SubjectId> added(const WorkerResult<protocol::NewSubject> &made);
    /// Lets an OpenCL worker's memory grow by what such a buffer takes.
    [[nodiscard]] WorkerResult<void> allowMemory(std::size_t bytes);
    [[nodiscard]] tl::unexpected<WorkerFailure> end(FailureKind kind, Error error, double limitSeconds = 0);
    [[nodiscard]] tl::unexpected<WorkerFailure> endOf(const Error &error, double limitSeconds);
    [[nodiscard]] WorkerResult<void> readHello(double limitSeconds);
    [[nodiscard]] std::string output();

    process::ScratchFolder m_scratch; // before the child, which is gone when it is removed
    process::ChildProcess m_child;
    process::FramePipe m_pipe;
    process::SharedMemory m_memory;
    RawBytes m_downloaded;
    std::stop_token m_stop;
    process::Deadline m_deadline = process::Deadline::never();
    std::optional<WorkerFailure> m_failure;
    OperationTimes m_operations;
    bool m_introduced = false;
    bool m_sealed = false;
    kernel::DeviceKind m_device = kernel::DeviceKind::OpenCl;
    std::uint64_t m_bufferBytes = 0; ///< by which its address space may be larger than compiling needs
    /// How many fingerprints a sample has: `sets` at most, of `tiles` each.
    struct Looked {
        std::size_t sets = 0;
        std::size_t tiles = 0;
    };
    [[nodiscard]] std::size_t printsOf(const TimedRun &run) const;

    std::vector<SubjectId> m_subjects;
    std::map<SubjectId, Looked> m_looked;
    std::vector<ModuleId> m_modules;
    std::vector<BufferId> m_buffers;
    kernel::Bindings m_facts;
    Environment m_environment;
    std::string m_isolation; ///< what the kernel enforces for it
    std::size_t m_cacheBytes = 0;
};

} // namespace klineage::gate
