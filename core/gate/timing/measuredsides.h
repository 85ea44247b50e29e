// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/correctness.h"
#include "core/gate/timing/rounds.h"
#include "core/gate/timing/timedoutputs.h"
#include "core/gate/timing/timedside.h"

#include <map>
#include <set>
#include <vector>

namespace klineage::gate {

/// The sides of one measurement: the candidate first, then a second copy of it, its parent and the vendor references, each looked at
/// before it takes part. One that is not right, or not there, is left out, and the trial's evidence says why.
/// Which worker each is timed in: sideworker.h.
class MeasuredSides
{
public:
    using Placed = tl::expected<void, ProfileEnd>;

    MeasuredSides(PreparedCandidate &candidate, const CorrectnessResult &correct, CompilerSession &compiler,
                  const TrialContext &context, TimedBuffers &buffers, TimedOutputs &outputs, Trial &trial,
                  const Where &where)
        : m_candidate(candidate)
        , m_correct(correct)
        , m_compiler(compiler)
        , m_context(context)
        , m_buffers(buffers)
        , m_outputs(outputs)
        , m_trial(trial)
        , m_where(where)
    {
        m_workers.push_back(std::make_unique<SideWorker>(context, buffers));
    }
    MeasuredSides(const MeasuredSides &) = delete;
    MeasuredSides &operator=(const MeasuredSides &) = delete;

    [[nodiscard]] Placed addCandidate(bool withCopy);
    /// Compiles the parent (OpenCL: loads it too); one that cannot be is left out, and the evidence says why.
    [[nodiscard]] Placed prepareParent();
    /// Runs the parent that was prepared, and takes it in behind the candidate. Where that has a worker of its own the others are run once too,
    /// so that it is no sign of being the parent.
    [[nodiscard]] Placed addParent();
    [[nodiscard]] Placed addReferences();
    /// The workload names some for the candidate's device.
    [[nodiscard]] bool hasReferences() const;
    /// OpenCL: from here on the workers compile and load no more. All sides must be there, but no plan's code must have run.
    [[nodiscard]] Placed seal();
    /// How many workers a job's sides take at most.
    [[nodiscard]] static std::size_t mostWorkers(const GateJob &job, kernel::DeviceKind device);

    /// Draws the buffers anew and loads all modules again, in a random order.
    [[nodiscard]] Placed place();
    [[nodiscard]] Placed remove();

    [[nodiscard]] std::vector<TimedSubject> &subjects() { return m_subjects; }
    [[nodiscard]] const std::vector<TimedSide> &sides() const { return m_sides; } ///< of the same order
    /// Plans but the candidate whose worker is not the candidate's: places among the sides.
    [[nodiscard]] std::vector<std::size_t> plansElsewhere() const;
    /// TimedBuffers::sharedBytes() of the worker that has most of them.
    [[nodiscard]] std::size_t sharedBytes() const;
    /// What TimedSample::touched calls by number.
    [[nodiscard]] const std::vector<ModuleVariable> &variables() const { return m_variables; }
    /// Of references, by provider.
    [[nodiscard]] const std::map<std::string, std::string> &versions() const { return m_versions; }

    /// Of the parent's results.
    [[nodiscard]] const Precision &parentPrecision() const { return m_parentPrecision; }

private:
    [[nodiscard]] const workload::Case &timedCase() const { return m_context.job.workload.cases.front(); }
    void note(const std::string &name, const std::string &value)
    {
        m_trial.verdict.evidence.push_back({name, value});
    }
    [[nodiscard]] tl::unexpected<ProfileEnd> failed(const WorkerFailure &failure, Culprit culprit) const
    {
        return tl::unexpected(ProfileEnd{failureEnd(failure, m_where), culprit});
    }
    /// The candidate's.
    [[nodiscard]] SideWorker &ownWorker() const { return *m_workers.front(); }
    /// The trial's worker, or one that has run nothing yet.
    [[nodiscard]] tl::expected<SideWorker *, ProfileEnd> workerFor(Culprit culprit);
    [[nodiscard]] Placed allocateIn(const SideWorker &worker) const;
    /// Ends a further one that no side needs.
    void forget(const SideWorker *worker);
    [[nodiscard]] Placed addPlanSide(const std::string &name, Culprit culprit, PreparedCandidate &prepared,
                                     SideWorker &worker);
    [[nodiscard]] Placed addReference(const workload::Reference &reference);
    void addPythonReference(const std::string &name, const ReferenceCall &call);
    /// The provider; with the operator when the workload names several of the provider on this surface.
    [[nodiscard]] std::string nameOf(const workload::Reference &reference) const;
    /// Runs another side on buffers of its own. One that is wrong is left out of the comparison: usable says so.
    [[nodiscard]] Placed checkOther(const SideWorker &worker, SubjectId subject, CheckedSet &set,
                                    const std::string &name, Culprit culprit, bool &usable);
    [[nodiscard]] Placed loadParent();
    /// module: loaded already.
    [[nodiscard]] Placed checkPlan(const SideWorker &worker, PreparedCandidate &prepared,
                                   std::optional<ModuleId> module, const std::string &name, Culprit culprit,
                                   bool &usable);
    /// When the candidate's worker is none the worse for it.
    [[nodiscard]] Placed leaveParentOut(const ProfileEnd &end);
    [[nodiscard]] OutputSets outputsOn(const SideWorker &worker) const;

    PreparedCandidate &m_candidate;
    const CorrectnessResult &m_correct;
    CompilerSession &m_compiler;
    const TrialContext &m_context;
    TimedBuffers &m_buffers;
    TimedOutputs &m_outputs;
    Trial &m_trial;
    Where m_where;
    std::vector<std::unique_ptr<SideWorker>> m_workers;
    PreparedCandidate m_parent;
    bool m_hasParent = false;
    Precision m_parentPrecision;
    SideWorker *m_parentWorker = nullptr;
    SideWorker *m_referenceWorker = nullptr; ///< of those that are no Python package
    std::optional<ModuleId> m_parentModule;  ///< OpenCL
    std::vector<TimedSide> m_sides;
    std::vector<TimedSubject> m_subjects;
    std::vector<ModuleVariable> m_variables; ///< of all sides' modules, as they are placed now
    std::map<std::string, std::string> m_versions;
    std::set<const void *> m_begun; ///< Python sessions that have this trial's buffers
};

} // namespace klineage::gate
