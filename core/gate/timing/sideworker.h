// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where sides are timed. On a processor kernels run in their worker's own process and can write to all of its memory: to another side's
// code and state, to the pool's threads, to the clock and the modes, to what the worker knows of its next sample. So each plan has a
// worker of its own there, which holds the same contents in buffers of its own, and vendor references share one in which no plan runs.
// What a candidate does to its process it does to itself; it leaves its parent nothing and takes nothing from it, and neither finds the
// other. Plans are loaded, run once and given decoys alike, so that what a kernel finds in its process says little of which side it is.
// The candidate's copy has a process of its own too: how far the two seem apart (A/A) includes what differs from process to process.
//
// Left is what processes of one machine share: caches, the memory's bandwidth, the cores and who gets them. A thread that goes on when
// its side's sample has ended slows whoever comes next. And what decoys left is read from the candidate's worker alone: a parent that
// reads all of its process's memory could miss that. What a side does within its own process is as it was.
//
// On other devices all sides share the trial's worker, whose memory their kernels do not reach.
#pragma once

#include "core/gate/supervisor/trialcontext.h"
#include "core/gate/timing/timedbuffers.h"

#include <optional>

namespace klineage::gate {

enum class Culprit { Candidate, Parent, Reference };

/// Why profiling stopped, and who did it. When it was not the candidate, profile again without that side.
struct ProfileEnd {
    TrialEnd end;
    Culprit culprit = Culprit::Candidate;
};

/// A worker that sides are timed in, and the buffers of timed runs there.
class SideWorker
{
public:
    /// The trial's own, with its buffers. Both must outlive this.
    SideWorker(const TrialContext &context, TimedBuffers &buffers)
        : m_context(&context)
        , m_buffers(&buffers)
    {}
    /// A further one (TrialContext::further), whose failures are the culprit's. Its buffers are to be allocated.
    [[nodiscard]] static tl::expected<std::unique_ptr<SideWorker>, ProfileEnd> start(
        Culprit culprit, const TrialContext &context, const TimedBuffers &like);
    SideWorker(const SideWorker &) = delete;
    SideWorker &operator=(const SideWorker &) = delete;

    [[nodiscard]] const TrialContext &context() const { return *m_context; }
    [[nodiscard]] WorkerSession &session() const { return m_context->session; }
    [[nodiscard]] TimedBuffers &buffers() const { return *m_buffers; }
    [[nodiscard]] bool isFurther() const { return m_ownContext.has_value(); }
    [[nodiscard]] tl::unexpected<ProfileEnd> failed(const WorkerFailure &failure, const Where &where) const
    {
        return tl::unexpected(ProfileEnd{failureEnd(failure, where), m_culprit});
    }

private:
    SideWorker(Culprit culprit, WorkerSession &session, const TrialContext &context, const TimedBuffers &like)
        : m_culprit(culprit)
        , m_ownContext(context.on(session))
        , m_ownBuffers(std::in_place, session, like)
        , m_context(&*m_ownContext)
        , m_buffers(&*m_ownBuffers)
    {}

    Culprit m_culprit = Culprit::Candidate;
    std::optional<TrialContext> m_ownContext;
    std::optional<TimedBuffers> m_ownBuffers;
    const TrialContext *m_context;
    TimedBuffers *m_buffers;
};

} // namespace klineage::gate
