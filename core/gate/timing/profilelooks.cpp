// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/random.h"
#include "core/gate/timing/profiler.h"

#include <algorithm>
#include <chrono>

namespace klineage::gate {

namespace {

constexpr double muchWork = 2e11; ///< operations: the oracle takes a second
constexpr double littleWork =
    2e7; ///< operations and bytes: so little that the first block need not wait for a measurement
constexpr double closerShare =
    0.03; ///< of a block's time, for expected outputs of sets that no seed's content is
constexpr std::size_t mostCloser = 8;
constexpr double lookShare = 0.1;                        ///< of the time so far, for looks element by element
constexpr std::size_t muchInput = std::size_t{64} << 20; ///< bytes: more are watched in half of the blocks
constexpr double quickOracleSeconds = 0.02; ///< for a set: so quick that any set may be looked at whole

std::vector<std::size_t> setsOf(const Decoy &decoy)
{
    std::vector<std::size_t> sets;
    for (const auto &entry : decoy.known)
        sets.push_back(entry.first);
    return sets;
}

} // namespace

RoundState::Decoy Profiler::decoy()
{
    Decoy drawn = drawDecoy(furtherRun(m_subjects.front(), m_state), m_buffers, m_decoyContents);
    TimedRun run = drawn.run;
    return {std::move(run), [this, drawn = std::move(drawn)](const TimedSample &sample) {
                return judgeDecoy(drawn, sample);
            }};
}

/// For who has a worker of his own, so that it gets what the candidate's gets. Nobody looks at what it leaves: that it is right is told by timed samples.
RoundState::Decoy Profiler::decoyElsewhere(std::size_t subject)
{
    TimedBuffers &buffers = m_sides.sides()[subject].worker()->buffers();
    Decoy drawn = drawDecoy(furtherRun(m_subjects[subject], m_state), buffers, m_decoyContents);
    std::vector<std::size_t> sets = setsOf(drawn);
    return {std::move(drawn.run),
            [&buffers, sets = std::move(sets), subject](const TimedSample &) -> RoundResult {
                if (auto restored = buffers.restore(sets); !restored)
                    return tl::unexpected(RoundFailure{restored.error(), subject});
                return {};
            },
            subject};
}

std::vector<RoundState::Decoy> Profiler::decoys()
{
    std::vector<RoundState::Decoy> drawn{decoy()};
    if (const auto others = m_sides.plansElsewhere(); !others.empty())
        drawn.push_back(decoyElsewhere(others[entropy() % others.size()]));
    return drawn;
}

/// All known sets by their fingerprints, and one of them element by element, as far as there is time: the one that seems wrong, or any.
RoundResult Profiler::judgeDecoy(const Decoy &decoy, const TimedSample &sample)
{
    if (auto clean = untouched(0, decoy.run, sample); !clean)
        return clean;
    const auto wrong = m_outputs.lookKnown(0, decoy.run, sample.prints, decoy.known);
    auto looked = decoy.known.find(wrong ? wrong->fault.set : m_state.sets);
    if (looked == decoy.known.end())
        looked = std::next(decoy.known.begin(), static_cast<std::ptrdiff_t>(entropy() % decoy.known.size()));
    const std::size_t set = looked->first;
    const std::size_t content = looked->second;
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    const std::chrono::duration<double> elapsed = begin - m_begin;
    const bool affordable = m_lookSeconds <= lookShare * elapsed.count();
    const auto finding = [&]() -> WorkerResult<std::optional<Finding>> {
        const OwnTime own(m_context, OwnTime::Work::Transfers);
        const bool withInputs =
            !decoy.spoilt.contains(set) && (m_buffers.inputBytes() <= muchInput || entropy() % 2 == 0);
        auto found = wrong || affordable ? m_buffers.inspectKnown(set, "candidate", content, withInputs)
                                         : WorkerResult<std::optional<Finding>>();
        if (auto restored = m_buffers.restore(setsOf(decoy)); found && !restored)
            return tl::unexpected(restored.error());
        return found;
    }();
    m_lookSeconds += std::chrono::duration<double>(Clock::now() - begin).count();
    if (!finding)
        return tl::unexpected(RoundFailure{finding.error(), 0});
    if (*finding) {
        Where where = m_where;
        where.seed = m_buffers.known(content).seed;
        return tl::unexpected(RoundFailure{TrialEnd(findingVerdict(**finding, where)), 0});
    }
    if ((wrong || affordable)
        && content < m_buffers.seedCount()) // hard ones are nothing to compare a parent's with
        m_precision.add(m_buffers.precision());
    return judged(wrong);
}

/// A set of a sample that was like any other, where the oracle is quick.
RoundResult Profiler::lookAtOne(const TimedRun &run)
{
    const bool slow = m_oracleSeconds > 0 ? m_oracleSeconds > quickOracleSeconds : m_work > littleWork;
    if (slow || entropy() % 2 == 0)
        return {};
    const std::size_t set = (run.first + entropy() % static_cast<std::size_t>(run.repeats)) % m_state.sets;
    const auto content = computeSet(set);
    if (!content)
        return tl::unexpected(RoundFailure{content.error(), 0});
    const auto finding = [&] {
        const OwnTime own(m_context, OwnTime::Work::Transfers);
        return m_buffers.inspect(set, "candidate", **content);
    }();
    if (!finding)
        return tl::unexpected(RoundFailure{finding.error(), 0});
    if (!*finding) {
        m_precision.add(m_buffers.precision());
        return {};
    }
    Where where = m_where;
    where.seed = m_buffers.seedOf(set);
    return tl::unexpected(RoundFailure{TrialEnd(findingVerdict(**finding, where)), 0});
}

/// What none of the sample's runs was given is as it was.
RoundResult Profiler::untouched(std::size_t subject, const TimedRun &run, const TimedSample &sample) const
{
    if (!sample.touched)
        return {};
    Where where = m_where;
    where.subject = m_sides.sides()[subject].culprit() == Culprit::Parent ? "parent" : "candidate";
    const auto end = [&](Verdict verdict) {
        return tl::unexpected(RoundFailure{TrialEnd(std::move(verdict)), subject});
    };
    if (sample.touched->buffer == 0) {
        const auto &variables = m_sides.variables();
        const std::size_t index = sample.touched->offsetBytes;
        return end(index < variables.size() ? globalVerdict(variables[index].name, true, where)
                                            : strayVerdict("memory of the driver's", where));
    }
    const TimedBuffers::Spot spot = m_buffers.spotOf(*sample.touched);
    if (spot.name.empty())
        return end(strayVerdict("memory between buffers", where));
    if (!spot.within)
        return end(strayVerdict("the red zones of " + spot.name, where));
    if (const auto *tensor = m_context.job.workload.findTensor(spot.name);
        tensor && tensor->role == workload::Role::Input) {
        where.seed = m_buffers.seedOf(spot.set);
        Finding changed;
        changed.kind = Finding::Kind::InputChanged;
        changed.buffer = spot.name;
        return end(findingVerdict(changed, where));
    }
    if (run.around <= run.repeats) // nothing was left out that could have been done ahead
        return end(strayVerdict(spot.name + " of other launches", where));
    const std::size_t launch = (spot.set + m_state.sets - run.first % m_state.sets) % m_state.sets;
    return end(aheadVerdict({spot.name, "", "", "", false, spot.set, launch}, where));
}

/// Sets whose content nobody knew before are computed too, in each block as many as cost little, and one in the end.
Profiler::Step Profiler::lookCloser(double blockSeconds)
{
    std::size_t looks = m_oracleSeconds > 0
                            ? static_cast<std::size_t>(closerShare * blockSeconds / m_oracleSeconds)
                            : (m_work < littleWork ? 1 : 0);
    looks = std::min(looks, mostCloser);
    if (!m_stoppedBy.empty() && (m_work < muchWork || !m_buffers.hasIntegers()))
        looks = std::max<std::size_t>(looks, 1);
    for (std::size_t i = 0; i < looks; ++i) {
        if (auto closer = judged(m_outputs.lookCloser()); !closer)
            return blame(closer.error());
    }
    return {};
}

RoundResult Profiler::judged(const TimedOutputs::Looked<TimedOutputs::Wrong> &looked)
{
    if (!looked)
        return tl::unexpected(RoundFailure{looked.error(), 0});
    if (!*looked)
        return {};
    Where where = m_where;
    const std::size_t side = (*looked)->side;
    where.subject = m_sides.sides()[side].culprit() == Culprit::Parent ? "parent" : "candidate";
    where.seed = m_buffers.seedOf((*looked)->fault.set);
    return tl::unexpected(RoundFailure{TrialEnd(timedOutputVerdict((*looked)->fault, where)), side});
}

RoundResult Profiler::look(std::size_t subject, const TimedRun &run, const TimedSample &sample)
{
    if (auto clean = untouched(subject, run, sample); !clean)
        return clean;
    return judged(m_outputs.look(subject, run, sample.prints));
}

Profiler::Step Profiler::blame(const RoundFailure &failure)
{
    const Culprit culprit = m_sides.sides()[failure.subject].culprit();
    if (const auto *end = std::get_if<TrialEnd>(&failure.failure)) {
        // Memory faults explain wrong results, so they are told first.
        const TimedSide &side = m_sides.sides()[failure.subject];
        TimedBuffers &buffers = side.isPlan() ? side.worker()->buffers() : m_buffers;
        const std::string name = &buffers == &m_buffers ? "candidate" : side.name();
        for (std::size_t set = 0; set < m_state.sets && culprit == Culprit::Candidate; ++set) {
            if (!m_buffers.audited(set))
                continue;
            Where where = m_where;
            where.seed = m_buffers.seedOf(set);
            const OwnTime own(m_context, OwnTime::Work::Transfers);
            const auto finding = buffers.inspect(set, name);
            if (finding && *finding && (*finding)->kind != Finding::Kind::Mismatch)
                return tl::unexpected(ProfileEnd{findingVerdict(**finding, where), culprit});
        }
        return tl::unexpected(ProfileEnd{*end, culprit});
    }
    return failed(std::get<WorkerFailure>(failure.failure), culprit);
}

/// What a set's outputs have to be whose content is no seed's as it is.
StageResult<CaseInstancePtr> Profiler::computeSet(std::size_t set)
{
    const OwnTime own(m_context, OwnTime::Work::Oracle);
    const auto begin = std::chrono::steady_clock::now();
    auto content = std::make_shared<CaseInstance>();
    content->seed = m_buffers.seedOf(set);
    content->tensors = m_buffers.tensorsOf(set);
    content->tolerance = m_buffers.model().tolerance;
    content->selection = m_buffers.model().selection;
    auto expected =
        m_context.expected(m_context.job.workload, timedCase(), content->tensors, content->tolerance);
    if (!expected)
        return tl::unexpected<TrialEnd>(expected.error());
    content->expected = std::move(*expected);
    m_oracleSeconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    return CaseInstancePtr(std::move(content));
}

} // namespace klineage::gate
