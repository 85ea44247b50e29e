// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/cubinglobals.h"
#include "core/gate/session/compilersession.h"
#include "core/gate/session/programbuilder.h"
#include "core/gate/session/verdicttext.h"
#include "core/gate/supervisor/furtherworkers.h"
#include "core/gate/supervisor/stageclock.h"
#include "core/gate/supervisor/supervisor.h"

#include <chrono>
#include <functional>

namespace klineage::gate {

/// A candidate or parent, parsed and (CUDA) compiled.
struct PreparedCandidate {
    std::string label; ///< "candidate", "parent"
    std::string name;  ///< file name, for messages
    kernel::Candidate candidate;
    std::map<std::string, std::int64_t> tunables;
    std::vector<cuda::DeviceGlobal> globals{}; ///< CUDA: what must not change from launch to launch
    std::string launches{};                    ///< what a compiler that decides about them is told of them
    CompileOutput compiled{}; ///< CUDA: from the compiler process; OpenCL: filled when it is first loaded
};

class DeviceJudge;
class PythonSessions;

/// What the stages of one trial share.
struct TrialContext {
    const GateJob &job;
    WorkerSession &session;
    std::stop_token stop;
    ProgressCallback progress;
    /// Of the candidate's own time: what the gate does meanwhile moves it (OwnTime).
    process::Deadline &deadline;
    double launchLimitSeconds = 20;
    /// Makes an instance, or takes a kept one.
    std::function<Result<CaseInstancePtr>(const workload::Case &, std::uint64_t seed)> instance;
    /// Seeds for the timed case.
    std::vector<std::uint64_t> timedSeeds;
    /// Where references that are Python packages run; nullptr: they are not to be used.
    PythonSessions *python = nullptr;
    /// Computes what outputs have to be, of tensors that are no seed's.
    ExpectedSource expected{};
    /// Seeds of what timed runs read, which no launch has seen before.
    std::vector<std::uint64_t> unseenSeeds{};
    bool hardLast = false;        ///< the last of timedSeeds is of hardContent()
    StageClock *clock = nullptr;  ///< nullptr: nobody wants to know
    DeviceJudge *judge = nullptr; ///< nullptr: the CPU fills and looks at buffers
    /// What the worker's process does with buffers takes as long as it must: no candidate runs in it that could draw it out.
    bool transfersAreOurs = false;
    ProgramBuilder *builder = nullptr; ///< nullptr: the worker compiles what is not compiled apart
    /// Where sides that are timed get workers of their own; nullptr: they share the session's.
    FurtherWorkers *further = nullptr;

    /// For another worker of the same trial: what was checked already is not checked there.
    [[nodiscard]] TrialContext on(WorkerSession &worker) const
    {
        TrialContext other{job, worker, stop, progress, deadline, launchLimitSeconds, instance, {}};
        other.python = python;
        other.expected = expected;
        other.unseenSeeds = unseenSeeds;
        other.clock = clock;
        other.judge = judge;
        other.transfersAreOurs = transfersAreOurs;
        other.builder = builder;
        other.further = further;
        return other;
    }

    void report(Stage stage, double fraction, const std::string &text) const
    {
        if (progress)
            progress({stage, fraction, text});
    }
};

/// While it lives the gate does work of its own, whose time is not the candidate's: inputs and expected outputs; packages that are made ready
/// as references (some compile for minutes); transfers and comparison where those are ours. The session and the further ones have no deadline
/// meanwhile (each operation has its own limit), and the trial's is moved by as much in the end.
class OwnTime
{
public:
    enum class Work { Oracle, Reference, Transfers };
    OwnTime(const TrialContext &context, Work work)
        : m_context(context)
        , m_counts(work != Work::Transfers || context.transfersAreOurs)
        , m_begin(std::chrono::steady_clock::now())
    {
        if (m_counts)
            setDeadlines(process::Deadline::never());
    }
    ~OwnTime()
    {
        if (!m_counts)
            return;
        const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - m_begin;
        m_context.deadline = m_context.deadline.later(spent.count());
        setDeadlines(m_context.deadline);
    }
    OwnTime(const OwnTime &) = delete;
    OwnTime &operator=(const OwnTime &) = delete;

private:
    void setDeadlines(process::Deadline deadline) const
    {
        m_context.session.setDeadline(deadline);
        if (m_context.further)
            m_context.further->setDeadline(deadline);
    }

    const TrialContext &m_context;
    bool m_counts;
    std::chrono::steady_clock::time_point m_begin;
};

/// Parses text and settles its tunables. A bad file is a verdict, a bad override an Error. workload: whose tensors it is launched on;
/// nullptr: the candidate is not going to be compiled.
[[nodiscard]] StageResult<PreparedCandidate> prepareCandidate(
    const std::string &label, const std::string &text, const std::string &name,
    const std::map<std::string, std::int64_t> &overrides, const workload::Workload *workload);

/// Compiles a CUDA candidate in the compiler process.
[[nodiscard]] StageResult<void> compileCandidate(PreparedCandidate &prepared, CompilerSession &compiler,
                                                 const std::string &target, double limitSeconds,
                                                 const std::stop_token &stop);

/// Looks whether the candidate wrote to a variable of its module, where it could keep something from launch to launch.
[[nodiscard]] StageResult<void> checkGlobals(const PreparedCandidate &prepared, ModuleId module,
                                             const TrialContext &context, const Where &where);

/// Loads it into the worker. What cannot be loaded is a compile_error.
[[nodiscard]] StageResult<ModuleId> loadCandidate(PreparedCandidate &prepared, const TrialContext &context);

/// How a worker ended that was compiling: none of the candidate ran, so that a signal is the compiler's own fault.
[[nodiscard]] TrialEnd workerCompileEnd(const WorkerFailure &failure, const Where &where,
                                        const TrialContext &context);

/// Evaluates the plan for a case of the workload on the session's device.
[[nodiscard]] StageResult<kernel::ResolvedPlan> resolveFor(const PreparedCandidate &prepared,
                                                           const TrialContext &context,
                                                           const workload::Case &c);

} // namespace klineage::gate
