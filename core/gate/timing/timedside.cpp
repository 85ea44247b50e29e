// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/timedside.h"

namespace klineage::gate {

using Placed = tl::expected<void, ProfileEnd>;

tl::unexpected<ProfileEnd> TimedSide::failed(const WorkerFailure &failure, const Where &where) const
{
    if (failure.kind == FailureKind::Candidate)
        return tl::unexpected(ProfileEnd{launchVerdict(failure.error, where), m_culprit});
    return tl::unexpected(ProfileEnd{failureEnd(failure, where), m_culprit});
}

tl::expected<TimedSide, ProfileEnd> TimedSide::plan(const std::string &name, Culprit culprit,
                                                    PreparedCandidate &prepared, SideWorker &worker,
                                                    const Where &where)
{
    TimedSide side(name, culprit);
    side.m_worker = &worker;
    side.m_prepared = &prepared;
    const TrialContext &context = worker.context();
    auto plan = resolveFor(prepared, context, context.job.workload.cases.front());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), culprit});
    side.m_plan = std::move(*plan);
    if (auto allocated = worker.buffers().allocateWorkspaces(name, side.m_plan); !allocated)
        return side.failed(allocated.error(), where);
    return side;
}

std::vector<ModuleVariable> TimedSide::variables() const
{
    std::vector<ModuleVariable> variables;
    for (std::size_t i = 0; m_module && m_prepared && i < m_prepared->globals.size(); ++i) {
        const cuda::DeviceGlobal &global = m_prepared->globals[i];
        variables.push_back({*m_module, global.name, global.initial.size()});
    }
    return variables;
}

Placed TimedSide::load(const Where &where)
{
    if (!m_prepared->candidate.surface.device().isHost)
        return {};
    const auto module = loadCandidate(*m_prepared, m_worker->context());
    if (!module)
        return tl::unexpected(ProfileEnd{module.error(), m_culprit});
    m_module = *module;
    if (auto primed = m_worker->session().prime(*module, m_plan); !primed)
        return failed(primed.error(), where);
    return {};
}

TimedSide TimedSide::reference(const std::string &provider, SubjectId subject, SideWorker &worker)
{
    TimedSide side(provider, Culprit::Reference);
    side.m_worker = &worker;
    side.m_subject = subject;
    return side;
}

Placed TimedSide::place(const OutputSets &outputs, const Where &where)
{
    if (!m_worker)
        return {};
    if (auto placed = m_prepared ? placePlan(where) : placeReference(where); !placed)
        return placed;
    if (auto set = m_worker->session().setFills(*m_subject, m_worker->buffers().fills(m_name)); !set)
        return failed(set.error(), where);
    if (m_prepared) {
        if (auto set = m_worker->session().setOutputs(*m_subject, outputs); !set)
            return failed(set.error(), where);
    }
    return {};
}

Placed TimedSide::placePlan(const Where &where)
{
    if (!m_module) {
        const auto module = loadCandidate(*m_prepared, m_worker->context());
        if (!module)
            return tl::unexpected(ProfileEnd{module.error(), m_culprit});
        m_module = *module;
    }
    const auto subject = m_worker->session().addPlan(*m_module, m_plan, m_worker->buffers().bindings(m_name));
    if (!subject)
        return failed(subject.error(), where);
    m_subject = *subject;
    return {};
}

Placed TimedSide::placeReference(const Where &where)
{
    if (auto bound = m_worker->session().rebind(*m_subject, m_worker->buffers().bindings(m_name)); !bound)
        return failed(bound.error(), where);
    return {};
}

Placed TimedSide::remove(const Where &where)
{
    if (!m_prepared || !m_subject)
        return {};
    if (auto removed = m_worker->session().removeSubject(*m_subject); !removed)
        return failed(removed.error(), where);
    m_subject.reset();
    if (m_prepared->candidate.surface.device().isHost)
        return {};
    if (auto unloaded = m_worker->session().unload(*m_module); !unloaded)
        return failed(unloaded.error(), where);
    m_module.reset();
    return {};
}

} // namespace klineage::gate
