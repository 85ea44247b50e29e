// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/measuredsides.h"

#include "core/gate/check/randomorder.h"
#include "core/gate/references/python.h"

#include <algorithm>

namespace klineage::gate {

using Placed = MeasuredSides::Placed;

Placed MeasuredSides::addPlanSide(const std::string &name, Culprit culprit, PreparedCandidate &prepared)
{
    auto side = TimedSide::plan(name, culprit, prepared, m_buffers, m_context, m_where);
    if (!side)
        return tl::unexpected(side.error());
    if (culprit == Culprit::Parent && m_parentModule)
        side->adopt(*m_parentModule);
    else if (auto loaded = side->load(m_context, m_where); !loaded)
        return loaded;
    const auto references = std::find_if(m_sides.begin(), m_sides.end(), [](const TimedSide &other) {
        return other.culprit() == Culprit::Reference;
    });
    m_subjects.insert(m_subjects.begin() + (references - m_sides.begin()), {name, 0, 0, {}, 0, {}});
    m_sides.insert(references, std::move(*side));
    return {};
}

Placed MeasuredSides::addCandidate(bool withCopy)
{
    if (auto added = addPlanSide("candidate", Culprit::Candidate, m_candidate); !added)
        return added;
    return withCopy ? addPlanSide("copy", Culprit::Candidate, m_candidate) : Placed();
}

Placed MeasuredSides::checkOther(SubjectId subject, CheckedSet &set, const std::string &name, Culprit culprit,
                                 bool &usable)
{
    Where where = m_where;
    where.subject = name;
    const auto checked = checkedRun(set, subject, 0, Fill::Nan, where, m_context);
    usable = checked.has_value();
    if (checked)
        return {};
    const auto *verdict = std::get_if<Verdict>(&checked.error());
    if (!m_context.session.alive() || !verdict)
        return tl::unexpected(ProfileEnd{checked.error(), culprit});
    note(name, "not compared, because its own result is not right: " + verdict->message);
    return {};
}

Placed MeasuredSides::checkParent(PreparedCandidate &prepared, bool &usable)
{
    const auto module =
        m_parentModule ? StageResult<ModuleId>(*m_parentModule) : loadCandidate(prepared, m_context);
    if (!module)
        return tl::unexpected(ProfileEnd{module.error(), Culprit::Parent});
    const auto plan = resolveFor(prepared, m_context, timedCase());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), Culprit::Parent});
    CheckedSet set(m_context.session, m_correct.timed.front(), m_context.judge);
    if (auto allocated = set.allocateTensors(); !allocated)
        return failed(allocated.error(), Culprit::Parent);
    const auto bindings = set.addPlan(*plan);
    if (!bindings)
        return failed(bindings.error(), Culprit::Parent);
    const auto subject = m_context.session.addPlan(*module, *plan, {*bindings});
    if (!subject) {
        if (subject.error().kind == FailureKind::Candidate)
            return tl::unexpected(ProfileEnd{launchVerdict(subject.error().error, m_where), Culprit::Parent});
        return failed(subject.error(), Culprit::Parent);
    }
    if (auto checked = checkOther(*subject, set, "parent", Culprit::Parent, usable); !checked)
        return checked;
    if (set.instance().tolerance.beforeRounding > 0)
        m_parentPrecision.add(set.beforeRounding());
    if (auto removed = m_context.session.removeSubject(*subject); !removed)
        return failed(removed.error(), Culprit::Parent);
    if (!m_parentModule) {
        if (auto unloaded = m_context.session.unload(*module); !unloaded)
            return failed(unloaded.error(), Culprit::Parent);
    }
    if (auto released = set.release(); !released)
        return failed(released.error(), Culprit::Parent);
    return {};
}

Placed MeasuredSides::loadParent()
{
    if (!m_candidate.candidate.surface.device().isHost)
        return {};
    const auto module = loadCandidate(m_parent, m_context);
    if (!module)
        return tl::unexpected(ProfileEnd{module.error(), Culprit::Parent});
    const auto plan = resolveFor(m_parent, m_context, timedCase());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), Culprit::Parent});
    if (auto primed = m_context.session.prime(*module, *plan); !primed) {
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
    if (const auto sealed = m_context.session.seal(true); !sealed)
        return failed(sealed.error(), Culprit::Candidate);
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
    if (auto loaded = loadParent(); !loaded) {
        const auto *verdict = std::get_if<Verdict>(&loaded.error().end);
        if (!verdict || !m_context.session.alive())
            return loaded;
        m_hasParent = false;
        note("parent", "not compared: " + verdict->message);
    }
    return {};
}

Placed MeasuredSides::addParent()
{
    if (!m_hasParent)
        return {};
    bool usable = false;
    if (auto checked = checkParent(m_parent, usable); !checked) {
        const auto *verdict = std::get_if<Verdict>(&checked.error().end);
        if (!verdict || !m_context.session.alive())
            return checked;
        note("parent", "not compared: " + verdict->message);
        return {};
    }
    return usable ? addPlanSide("parent", Culprit::Parent, m_parent) : Placed();
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
    CheckedSet set(m_context.session, m_correct.timed.front(), m_context.judge);
    if (auto allocated = set.allocateTensors(); !allocated)
        return failed(allocated.error(), Culprit::Reference);
    const auto subject = m_context.session.addReference(call, {set.tensorBindings()});
    if (!subject) {
        if (!m_context.session.alive())
            return failed(subject.error(), Culprit::Reference);
        note(name, "not compared: " + subject.error().error.message);
        return {};
    }
    bool usable = false;
    if (auto checked = checkOther(*subject, set, name, Culprit::Reference, usable); !checked)
        return checked;
    const auto info = m_context.session.subjectInfo(*subject);
    if (!info)
        return failed(info.error(), Culprit::Reference);
    m_versions[name] = info->version;
    if (usable) {
        m_sides.push_back(TimedSide::reference(name, *subject));
        m_subjects.push_back({name, *subject, 0, {}, 0, {}});
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
    return {};
}

Placed MeasuredSides::place()
{
    if (auto drawn = m_buffers.redraw(entropy()); !drawn)
        return failed(drawn.error(), Culprit::Candidate);
    m_outputs.beginBlock();
    for (const std::size_t i : randomOrder(m_sides.size(), entropy)) {
        if (auto placed = m_sides[i].place(m_buffers, m_outputs.outputs(), m_context, m_where); !placed)
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
    if (auto set = m_context.session.setContents(m_buffers.contents()); !set)
        return failed(set.error(), Culprit::Candidate);
    return {};
}

Placed MeasuredSides::remove()
{
    for (TimedSide &side : m_sides) {
        if (auto removed = side.remove(m_context, m_where); !removed)
            return removed;
    }
    return {};
}

} // namespace klineage::gate
