// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/measuredsides.h"

#include "core/gate/check/randomorder.h"
#include "core/gate/references/python.h"
#include "core/gate/session/programbuilder.h"

#include <algorithm>

namespace klineage::gate {

using Placed = MeasuredSides::Placed;

std::size_t MeasuredSides::mostWorkers(const GateJob &job, kernel::DeviceKind device)
{
    const bool withParent = !job.request.parentText.empty();
    const auto &all = job.workload.references;
    const auto isOurs = [&](const workload::Reference &reference) { return reference.device == device; };
    const auto isLibrary = [&](const workload::Reference &reference) {
        return isOurs(reference) && !isPythonProvider(reference.provider);
    };
    const bool withReference = job.request.withReference && std::any_of(all.begin(), all.end(), isOurs);
    const bool withLibrary = withReference && std::any_of(all.begin(), all.end(), isLibrary);
    return 1 + (withParent || withReference ? 1 : 0) + (withParent ? 1 : 0) + (withLibrary ? 1 : 0);
}

tl::expected<SideWorker *, ProfileEnd> MeasuredSides::workerFor(Culprit culprit)
{
    if (!m_context.further)
        return &ownWorker();
    auto started = SideWorker::start(culprit, m_context, m_buffers);
    if (!started)
        return tl::unexpected(started.error());
    return m_workers.emplace_back(std::move(*started)).get();
}

/// Those that share the candidate's have its buffers.
Placed MeasuredSides::allocateIn(const SideWorker &worker) const
{
    if (worker.buffers().count() > 0)
        return {};
    if (auto allocated = worker.buffers().allocate(m_buffers.count()); !allocated)
        return worker.failed(allocated.error(), m_where);
    return {};
}

void MeasuredSides::forget(const SideWorker *worker)
{
    std::erase_if(m_workers, [&](const auto &held) {
        const bool isIt = held.get() == worker && held->isFurther();
        if (isIt)
            held->session().discard();
        return isIt;
    });
}

Placed MeasuredSides::addPlanSide(const std::string &name, Culprit culprit, PreparedCandidate &prepared,
                                  SideWorker &worker)
{
    if (auto allocated = allocateIn(worker); !allocated)
        return allocated;
    auto side = TimedSide::plan(name, culprit, prepared, worker, m_where);
    if (!side)
        return tl::unexpected(side.error());
    if (culprit == Culprit::Parent && m_parentModule)
        side->adopt(*m_parentModule);
    else if (auto loaded = side->load(m_where); !loaded)
        return loaded;
    const auto references = std::find_if(m_sides.begin(), m_sides.end(), [](const TimedSide &other) {
        return other.culprit() == Culprit::Reference;
    });
    m_subjects.insert(m_subjects.begin() + (references - m_sides.begin()),
                      {name, 0, 0, {}, 0, {}, worker.isFurther() ? &worker.session() : nullptr});
    m_sides.insert(references, std::move(*side));
    return {};
}

Placed MeasuredSides::addCandidate(bool withCopy)
{
    if (auto added = addPlanSide("candidate", Culprit::Candidate, m_candidate, ownWorker()); !added)
        return added;
    if (!withCopy)
        return {};
    const auto worker = workerFor(Culprit::Candidate);
    if (!worker)
        return tl::unexpected(worker.error());
    if ((*worker)->isFurther()) // what was just compiled need not be again; none of it has run yet
        (void)copyPrograms(m_context.session.programs(), (*worker)->session().programs());
    return addPlanSide("copy", Culprit::Candidate, m_candidate, **worker);
}

Placed MeasuredSides::checkOther(const SideWorker &worker, SubjectId subject, CheckedSet &set,
                                 const std::string &name, Culprit culprit, bool &usable)
{
    Where where = m_where;
    where.subject = culprit == Culprit::Candidate ? "candidate" : name;
    const auto checked = checkedRun(set, subject, 0, Fill::Nan, where, worker.context());
    usable = checked.has_value();
    if (checked)
        return {};
    const auto *verdict = std::get_if<Verdict>(&checked.error());
    if (!worker.session().alive() || !verdict || culprit == Culprit::Candidate)
        return tl::unexpected(ProfileEnd{checked.error(), culprit});
    note(name, "not compared, because its own result is not right: " + verdict->message);
    return {};
}

Placed MeasuredSides::checkPlan(const SideWorker &worker, PreparedCandidate &prepared,
                                std::optional<ModuleId> module, const std::string &name, Culprit culprit,
                                bool &usable)
{
    const TrialContext &context = worker.context();
    const bool isLoaded = module.has_value();
    if (!isLoaded) {
        const auto loaded = loadCandidate(prepared, context);
        if (!loaded)
            return tl::unexpected(ProfileEnd{loaded.error(), culprit});
        module = *loaded;
    }
    const auto plan = resolveFor(prepared, context, timedCase());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), culprit});
    CheckedSet set(context.session, m_correct.timed.front(), context.judge);
    if (auto allocated = set.allocateTensors(); !allocated)
        return failed(allocated.error(), culprit);
    const auto bindings = set.addPlan(*plan);
    if (!bindings)
        return failed(bindings.error(), culprit);
    const auto subject = context.session.addPlan(*module, *plan, {*bindings});
    if (!subject) {
        if (subject.error().kind == FailureKind::Candidate)
            return tl::unexpected(ProfileEnd{launchVerdict(subject.error().error, m_where), culprit});
        return failed(subject.error(), culprit);
    }
    if (auto checked = checkOther(worker, *subject, set, name, culprit, usable); !checked)
        return checked;
    if (culprit == Culprit::Parent)
        m_parentPrecision.add(set.precision());
    if (auto removed = context.session.removeSubject(*subject); !removed)
        return failed(removed.error(), culprit);
    if (!isLoaded) {
        if (auto unloaded = context.session.unload(*module); !unloaded)
            return failed(unloaded.error(), culprit);
    }
    if (auto released = set.release(); !released)
        return failed(released.error(), culprit);
    return {};
}

Placed MeasuredSides::loadParent()
{
    const auto worker = workerFor(Culprit::Parent);
    if (!worker)
        return tl::unexpected(worker.error());
    m_parentWorker = *worker;
    if (auto allocated = allocateIn(**worker); !allocated)
        return allocated;
    if (!m_candidate.candidate.surface.device().isHost)
        return {};
    const TrialContext &context = m_parentWorker->context();
    const auto module = loadCandidate(m_parent, context);
    if (!module)
        return tl::unexpected(ProfileEnd{module.error(), Culprit::Parent});
    const auto plan = resolveFor(m_parent, context, timedCase());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), Culprit::Parent});
    if (auto primed = context.session.prime(*module, *plan); !primed) {
        if (primed.error().kind == FailureKind::Candidate)
            return tl::unexpected(ProfileEnd{launchVerdict(primed.error().error, m_where), Culprit::Parent});
        return failed(primed.error(), Culprit::Parent);
    }
    m_parentModule = *module;
    return {};
}

Placed MeasuredSides::seal()
{
    if (!m_candidate.candidate.surface.device().isHost)
        return {};
    for (const auto &worker : m_workers) {
        if (worker->isFurther()) // the gate's own kernel, which the first one has compiled by then
            (void)copyPrograms(m_context.session.programs(), worker->session().programs());
        if (const auto sealed = worker->session().seal(true); !sealed)
            return worker->failed(sealed.error(), m_where);
    }
    return {};
}

Placed MeasuredSides::leaveParentOut(const ProfileEnd &end)
{
    const auto *verdict = std::get_if<Verdict>(&end.end);
    if (!verdict || !m_context.session.alive())
        return tl::unexpected(end);
    m_hasParent = false;
    forget(m_parentWorker);
    note("parent", "not compared: " + verdict->message);
    return {};
}

Placed MeasuredSides::prepareParent()
{
    auto prepared =
        prepareCandidate("parent", m_context.job.request.parentText, "parent", {}, &m_context.job.workload);
    if (prepared && prepared->candidate.surface != m_candidate.candidate.surface) {
        note("parent", "not compared, because it is written for another surface.");
        return {};
    }
    StageResult<void> compiled;
    if (prepared && prepared->candidate.surface->compiledApart)
        compiled = compileCandidate(
            *prepared, m_compiler,
            prepared->candidate.surface.device().target(m_context.session.helloEnvironment().platform),
            m_context.deadline.secondsLeft(), m_context.stop);
    if (!prepared || !compiled) {
        const TrialEnd &end = !prepared ? prepared.error() : compiled.error();
        const auto *verdict = std::get_if<Verdict>(&end);
        if (!verdict)
            return tl::unexpected(ProfileEnd{end, Culprit::Parent});
        note("parent", "not compared: " + verdict->message);
        return {};
    }
    m_parent = std::move(*prepared);
    m_hasParent = true;
    const auto loaded = loadParent();
    return loaded ? loaded : leaveParentOut(loaded.error());
}

Placed MeasuredSides::addParent()
{
    if (!m_hasParent)
        return {};
    bool usable = false;
    if (m_context.further) {
        for (const TimedSide &side : m_sides) {
            if (!side.isPlan())
                continue;
            if (auto checked = checkPlan(*side.worker(), m_candidate, side.module(), side.name(),
                                         side.culprit(), usable);
                !checked)
                return checked;
        }
    }
    if (auto checked =
            checkPlan(*m_parentWorker, m_parent, m_parentModule, "parent", Culprit::Parent, usable);
        !checked)
        return leaveParentOut(checked.error());
    if (usable)
        return addPlanSide("parent", Culprit::Parent, m_parent, *m_parentWorker);
    forget(m_parentWorker);
    return {};
}

std::string MeasuredSides::nameOf(const workload::Reference &reference) const
{
    const auto &all = m_context.job.workload.references;
    const auto count = std::count_if(all.begin(), all.end(), [&](const workload::Reference &other) {
        return other.device == reference.device && other.provider == reference.provider;
    });
    return count > 1 ? reference.provider + "/" + reference.op : reference.provider;
}

void MeasuredSides::addPythonReference(const std::string &name, const ReferenceCall &call)
{
    const auto left = [&](const WorkerFailure &failure) {
        note(name, "not compared: " + failure.error.message);
    };
    if (!m_context.python)
        return;
    const OwnTime own(m_context, OwnTime::Work::Reference);
    const auto busyWith = [&](const std::string &what) { // who waits for the trial hears of each step
        m_context.report(Stage::Profile, 0, what + ' ' + name);
    };
    busyWith("starting");
    const auto session = m_context.python->session(call.provider, packageStartSeconds, m_context.stop);
    if (!session)
        return left(session.error());
    if (m_begun.insert(*session).second) {
        busyWith("uploading inputs for");
        if (auto begun = (*session)->begin(m_correct.timed.front(), m_buffers.count(), m_context.stop);
            !begun)
            return left(begun.error());
    }
    busyWith("compiling");
    const auto subject = (*session)->add(call);
    if (!subject)
        return left(subject.error());
    busyWith("checking");
    const auto wrong = (*session)->check(*subject);
    if (!wrong)
        return left(wrong.error());
    if (*wrong)
        return note(name, "not compared, because its own result is not right: " + **wrong);
    m_versions[name] = (*session)->version(*subject);
    m_sides.push_back(TimedSide::elsewhere(name));
    TimedSubject timed;
    timed.name = name;
    timed.sampler = [session = *session, subject = *subject](const TimedRun &run, double limitSeconds) {
        auto taken = session->time(subject, run, limitSeconds);
        // Told as the reference's failure; the trial goes on without it.
        if (!taken && taken.error().kind != FailureKind::Cancelled)
            taken.error().kind = FailureKind::Candidate;
        return taken;
    };
    m_subjects.push_back(std::move(timed));
}

Placed MeasuredSides::addReference(const workload::Reference &reference)
{
    const std::string name = nameOf(reference);
    ReferenceCall call{reference.provider, reference.op, {}, {}};
    for (const auto &[role, argument] : reference.args) {
        if (const auto axis = timedCase().axes.find(argument); axis != timedCase().axes.end())
            call.sizes[role] = axis->second;
        else
            call.buffers[role] = argument;
    }
    if (isPythonProvider(reference.provider)) {
        addPythonReference(name, call);
        return {};
    }
    if (!m_referenceWorker) {
        const auto started = workerFor(Culprit::Reference);
        if (!started)
            return tl::unexpected(started.error());
        m_referenceWorker = *started;
    }
    SideWorker &worker = *m_referenceWorker;
    WorkerSession &session = worker.session();
    CheckedSet set(session, m_correct.timed.front(), m_context.judge);
    if (auto allocated = set.allocateTensors(); !allocated)
        return failed(allocated.error(), Culprit::Reference);
    const auto subject = session.addReference(call, {set.tensorBindings()});
    if (!subject) {
        if (!session.alive())
            return failed(subject.error(), Culprit::Reference);
        note(name, "not compared: " + subject.error().error.message);
        return {};
    }
    bool usable = false;
    if (auto checked = checkOther(worker, *subject, set, name, Culprit::Reference, usable); !checked)
        return checked;
    const auto info = session.subjectInfo(*subject);
    if (!info)
        return failed(info.error(), Culprit::Reference);
    m_versions[name] = info->version;
    if (usable) {
        if (auto allocated = allocateIn(worker); !allocated)
            return allocated;
        m_sides.push_back(TimedSide::reference(name, *subject, worker));
        m_subjects.push_back({name, *subject, 0, {}, 0, {}, worker.isFurther() ? &session : nullptr});
    }
    return {};
}

bool MeasuredSides::hasReferences() const
{
    const auto &all = m_context.job.workload.references;
    return std::any_of(all.begin(), all.end(), [this](const workload::Reference &reference) {
        return reference.device == m_candidate.candidate.surface->device;
    });
}

Placed MeasuredSides::addReferences()
{
    for (const workload::Reference &reference : m_context.job.workload.references) {
        if (reference.device != m_candidate.candidate.surface->device)
            continue;
        if (auto added = addReference(reference); !added)
            return added;
    }
    if (std::none_of(m_sides.begin(), m_sides.end(),
                     [this](const TimedSide &side) { return side.worker() == m_referenceWorker; }))
        forget(m_referenceWorker);
    return {};
}

std::vector<std::size_t> MeasuredSides::plansElsewhere() const
{
    std::vector<std::size_t> plans;
    for (std::size_t i = 1; i < m_sides.size(); ++i) {
        if (m_sides[i].isPlan() && m_sides[i].worker()->isFurther())
            plans.push_back(i);
    }
    return plans;
}

std::size_t MeasuredSides::sharedBytes() const
{
    std::size_t most = m_buffers.sharedBytes();
    for (const auto &worker : m_workers)
        most = std::max(most, worker->buffers().sharedBytes());
    return most;
}

/// Prints of all workers can be compared: of their key, and cut alike.
OutputSets MeasuredSides::outputsOn(const SideWorker &worker) const
{
    OutputSets outputs = m_outputs.outputs();
    outputs.sets = worker.buffers().outputs().sets;
    return outputs;
}

Placed MeasuredSides::place()
{
    const std::uint64_t key = entropy(); // of all, so that a set holds the same everywhere
    for (const auto &worker : m_workers) {
        if (auto drawn = worker->buffers().redraw(key); !drawn)
            return worker->failed(drawn.error(), m_where);
    }
    m_outputs.beginBlock();
    for (const std::size_t i : randomOrder(m_sides.size(), entropy)) {
        const SideWorker *worker = m_sides[i].worker();
        if (auto placed = m_sides[i].place(worker ? outputsOn(*worker) : OutputSets(), m_where); !placed)
            return placed;
        m_subjects[i].id = m_sides[i].subject();
    }
    auto guards = m_buffers.guards();
    if (!guards)
        return failed(guards.error(), Culprit::Candidate);
    if (!guards->copies.empty()) {
        m_variables.clear();
        for (const TimedSide &side : m_sides) {
            const auto own = side.variables();
            m_variables.insert(m_variables.end(), own.begin(), own.end());
        }
        guards->variables = m_variables;
        if (auto set = m_context.session.setGuards(*guards); !set)
            return failed(set.error(), Culprit::Candidate);
    }
    for (const auto &worker : m_workers) {
        if (auto set = worker->session().setContents(worker->buffers().contents()); !set)
            return worker->failed(set.error(), m_where);
    }
    return {};
}

Placed MeasuredSides::remove()
{
    for (TimedSide &side : m_sides) {
        if (auto removed = side.remove(m_where); !removed)
            return removed;
    }
    return {};
}

} // namespace klineage::gate
