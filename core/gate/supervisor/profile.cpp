// SPDX-License-Identifier: GPL-3.0-or-later
//
// All sides run over the same rotating set of buffers, so that none has better addresses or a warmer cache than another. The sets
// carry the contents of the correctness stage's seeds; a set drawn at random is poisoned after the rounds, the candidate is timed
// over all of them once more, and that set is judged like any other launch.
#include "core/gate/supervisor/profile.h"

#include "core/files/sha256.h"
#include "core/gate/check/random.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr double cacheMultiple = 5;
constexpr std::size_t maxSets = 256;
constexpr double longestRotationNs = 250e6;
constexpr std::size_t hostBudgetBytes = std::size_t{512} << 20;
constexpr std::size_t deviceBudgetBytes = std::size_t{4} << 30;
constexpr std::size_t fewestNoiseRounds = 10;
constexpr int resamples = 2000;

std::string percent(double ratio)
{
    return formatNumber(std::round(ratio * 1e5) / 1e3) + " %";
}

class Profiler
{
public:
    Profiler(PreparedCandidate &candidate, const CorrectnessResult &correct, CompilerSession &compiler,
             const TrialContext &context, NoiseFloors &noise, Trial &trial)
        : m_candidate(candidate)
        , m_correct(correct)
        , m_compiler(compiler)
        , m_context(context)
        , m_noise(noise)
        , m_trial(trial)
    {
        m_where.stage = Stage::Profile;
        m_where.caseName = timedCase().name;
        m_where.seed = correct.timed.front()->seed;
    }
    tl::expected<void, ProfileEnd> run(const ProfileRequest &request);

private:
    using Step = tl::expected<void, ProfileEnd>;

    const workload::Case &timedCase() const { return m_context.job.workload.cases.front(); }
    std::string noiseKey() const
    {
        // The spread depends on how long a run takes and what it touches, so one candidate's says little of another's.
        return m_context.job.workload.name + "/" + m_context.session.helloEnvironment().platform + "/"
               + m_trial.candidate;
    }
    void note(const std::string &name, const std::string &value)
    {
        m_trial.verdict.evidence.push_back({name, value});
    }
    tl::unexpected<ProfileEnd> failed(const WorkerFailure &failure, Culprit culprit) const
    {
        return tl::unexpected(ProfileEnd{failureEnd(failure, m_where), culprit});
    }
    std::size_t setCount() const;
    Step makeSets();
    tl::expected<SubjectId, ProfileEnd> addPlan(PreparedCandidate &prepared, Culprit culprit);
    Step addCandidate();
    Step addParent();
    Step addReferences();
    Step addReference(const workload::Reference &reference);
    /// A parent or reference that is wrong, or dies, is left out of the comparison.
    Step checkOther(SubjectId subject, const std::string &name, Culprit culprit, bool &usable);
    Step recheck();
    Step finish(const RoundsOutcome &outcome);
    Step compare(std::optional<double> spread);
    Culprit culpritOf(std::size_t subject) const;

    PreparedCandidate &m_candidate;
    const CorrectnessResult &m_correct;
    CompilerSession &m_compiler;
    const TrialContext &m_context;
    NoiseFloors &m_noise;
    Trial &m_trial;
    Where m_where;
    std::vector<CheckedSet> m_sets;
    std::vector<TimedSubject> m_subjects;
    std::map<std::string, std::string> m_versions; ///< of references, by provider
};

std::size_t Profiler::setCount() const
{
    const auto bytes = static_cast<double>(CheckedSet::tensorBytes(*m_correct.timed.front()));
    const double wanted =
        std::ceil(cacheMultiple * static_cast<double>(m_context.session.cacheBytes()) / bytes);
    const bool host = m_candidate.candidate.surface == kernel::Surface::OpenCl;
    const double affordable = static_cast<double>(host ? hostBudgetBytes : deviceBudgetBytes) / bytes;
    const double quick = longestRotationNs / std::max(m_correct.roughNs, 1.0);
    const auto seeds = static_cast<double>(m_correct.timed.size());
    const double count =
        std::min({std::max(wanted, seeds), std::max(quick, seeds), std::max(affordable, 1.0)});
    return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1, maxSets);
}

Profiler::Step Profiler::makeSets()
{
    const std::size_t count = setCount();
    for (std::size_t i = 0; i < count; ++i) {
        m_sets.emplace_back(m_context.session, m_correct.timed[i % m_correct.timed.size()]);
        if (auto allocated = m_sets.back().allocateTensors(); !allocated)
            return failed(allocated.error(), Culprit::Candidate);
    }
    return {};
}

tl::expected<SubjectId, ProfileEnd> Profiler::addPlan(PreparedCandidate &prepared, Culprit culprit)
{
    auto module = loadCandidate(prepared, m_context);
    if (!module)
        return tl::unexpected(ProfileEnd{module.error(), culprit});
    const auto plan = resolveFor(prepared, m_context, timedCase());
    if (!plan)
        return tl::unexpected(ProfileEnd{plan.error(), culprit});
    std::vector<BufferSet> bindings;
    for (CheckedSet &set : m_sets) {
        auto bound = set.addPlan(*plan);
        if (!bound)
            return failed(bound.error(), culprit);
        bindings.push_back(std::move(*bound));
    }
    const auto subject = m_context.session.addPlan(*module, *plan, bindings);
    if (!subject) {
        if (subject.error().kind == FailureKind::Candidate)
            return tl::unexpected(ProfileEnd{launchVerdict(subject.error().error, m_where), culprit});
        return failed(subject.error(), culprit);
    }
    return *subject;
}

Profiler::Step Profiler::addCandidate()
{
    const auto subject = addPlan(m_candidate, Culprit::Candidate);
    if (!subject)
        return tl::unexpected(subject.error());
    m_subjects.push_back({"candidate", *subject, 1, {}, 0});
    const auto info = m_context.session.subjectInfo(*subject);
    if (!info)
        return failed(info.error(), Culprit::Candidate);
    m_trial.metrics.insert(m_trial.metrics.end(), info->metrics.begin(), info->metrics.end());
    if (m_noise.contains(noiseKey()))
        return {};
    const auto copy = addPlan(m_candidate, Culprit::Candidate);
    if (!copy)
        return tl::unexpected(copy.error());
    m_subjects.push_back({"copy", *copy, 1, {}, 0});
    return {};
}

Profiler::Step Profiler::checkOther(SubjectId subject, const std::string &name, Culprit culprit, bool &usable)
{
    Where where = m_where;
    where.subject = name;
    const auto checked = checkedRun(m_sets.front(), subject, 0, Fill::Nan, where, m_context);
    usable = checked.has_value();
    if (checked)
        return {};
    const auto *verdict = std::get_if<Verdict>(&checked.error());
    if (!m_context.session.alive() || !verdict)
        return tl::unexpected(ProfileEnd{checked.error(), culprit});
    note(name, "not compared, because its own result is not right: " + verdict->message);
    return {};
}

Profiler::Step Profiler::addParent()
{
    const GateRequest &request = m_context.job.request;
    auto prepared = prepareCandidate("parent", request.parentText, "parent", {});
    if (prepared && prepared->candidate.surface != m_candidate.candidate.surface) {
        note("parent", "not compared, because it is written for another surface.");
        return {};
    }
    StageResult<void> compiled;
    if (prepared && prepared->candidate.surface == kernel::Surface::Cuda)
        compiled = compileCandidate(*prepared, m_compiler,
                                    compileTarget(m_context.session.helloEnvironment().platform),
                                    m_context.deadline.secondsLeft(), m_context.stop);
    if (!prepared || !compiled) {
        const TrialEnd &end = !prepared ? prepared.error() : compiled.error();
        const auto *verdict = std::get_if<Verdict>(&end);
        if (!verdict)
            return tl::unexpected(ProfileEnd{end, Culprit::Parent});
        note("parent", "not compared: " + verdict->message);
        return {};
    }
    const auto subject = addPlan(*prepared, Culprit::Parent);
    if (!subject) {
        const auto *verdict = std::get_if<Verdict>(&subject.error().end);
        if (!verdict || !m_context.session.alive())
            return tl::unexpected(subject.error());
        note("parent", "not compared: " + verdict->message);
        return {};
    }
    bool usable = false;
    if (auto checked = checkOther(*subject, "parent", Culprit::Parent, usable); !checked)
        return checked;
    if (usable)
        m_subjects.push_back({"parent", *subject, 1, {}, 0});
    return {};
}

Profiler::Step Profiler::addReference(const workload::Reference &reference)
{
    ReferenceCall call{reference.provider, reference.op, {}, {}};
    for (const auto &[role, name] : reference.args) {
        if (const auto axis = timedCase().axes.find(name); axis != timedCase().axes.end())
            call.sizes[role] = axis->second;
        else
            call.buffers[role] = name;
    }
    std::vector<BufferSet> bindings;
    for (const CheckedSet &set : m_sets)
        bindings.push_back(set.tensorBindings());
    const auto subject = m_context.session.addReference(call, bindings);
    if (!subject) {
        if (!m_context.session.alive())
            return failed(subject.error(), Culprit::Reference);
        note(reference.provider, "not compared: " + subject.error().error.message);
        return {};
    }
    bool usable = false;
    if (auto checked = checkOther(*subject, reference.provider, Culprit::Reference, usable); !checked)
        return checked;
    const auto info = m_context.session.subjectInfo(*subject);
    if (!info)
        return failed(info.error(), Culprit::Reference);
    if (usable)
        m_subjects.push_back({reference.provider, *subject, 1, {}, 0});
    m_versions[reference.provider] = info->version;
    return {};
}

Profiler::Step Profiler::addReferences()
{
    for (const workload::Reference &reference : m_context.job.workload.references) {
        if (reference.surface != m_candidate.candidate.surface)
            continue;
        if (auto added = addReference(reference); !added)
            return added;
    }
    return {};
}

Culprit Profiler::culpritOf(std::size_t subject) const
{
    const std::string &name = m_subjects[subject].name;
    if (name == "candidate" || name == "copy")
        return Culprit::Candidate;
    return name == "parent" ? Culprit::Parent : Culprit::Reference;
}

Profiler::Step Profiler::recheck()
{
    CheckedSet &set = m_sets[CounterRandom(entropy()).bits(0) % m_sets.size()];
    Where where = m_where;
    where.seed = set.instance().seed;
    if (auto armed = set.arm(Fill::Garbage); !armed)
        return failed(armed.error(), Culprit::Candidate);
    const TimedSubject &candidate = m_subjects.front();
    const int repeats = std::max(candidate.repeats, static_cast<int>(m_sets.size()));
    const double limit = m_context.launchLimitSeconds + 5e-9 * candidate.estimateNs * repeats;
    if (const auto timed = m_context.session.time({{candidate.id, repeats}}, limit); !timed)
        return failed(timed.error(), Culprit::Candidate);
    const auto finding = set.inspect();
    if (!finding)
        return failed(finding.error(), Culprit::Candidate);
    if (*finding)
        return tl::unexpected(ProfileEnd{findingVerdict(**finding, where), Culprit::Candidate});
    return {};
}

Profiler::Step Profiler::compare(std::optional<double> spread)
{
    const TimedSubject &candidate = m_subjects.front();
    for (const TimedSubject &subject : m_subjects) {
        m_trial.samples.push_back({subject.name, subject.ns});
        if (subject.name == "candidate" || subject.name == "copy")
            continue;
        Comparison comparison;
        comparison.against = subject.name;
        comparison.subject = subject.name == "parent" ? files::sha256Hex(m_context.job.request.parentText)
                                                      : m_versions[subject.name];
        comparison.speedup = bootstrapMedian(pairedRatios(subject.ns, candidate.ns), 1, resamples);
        comparison.otherNs = median(subject.ns);
        comparison.change = decide(comparison.speedup, subject.ns.size(), spread);
        m_trial.verdict.comparisons.push_back(std::move(comparison));
    }
    return {};
}

Profiler::Step Profiler::finish(const RoundsOutcome &outcome)
{
    const TimedSubject &candidate = m_subjects.front();
    const auto copy =
        std::find_if(m_subjects.begin(), m_subjects.end(), [](const auto &s) { return s.name == "copy"; });
    if (copy != m_subjects.end() && copy->ns.size() >= fewestNoiseRounds)
        m_noise[noiseKey()] = noiseFloor(bootstrapMedian(pairedRatios(copy->ns, candidate.ns), 1, resamples));
    std::optional<double> spread;
    if (const auto known = m_noise.find(noiseKey()); known != m_noise.end())
        spread = known->second;
    m_trial.latencyNs = bootstrapMedian(candidate.ns, 1, resamples);
    const kernel::Bindings bindings = m_context.job.workload.bindings(timedCase());
    const double seconds = m_trial.latencyNs.value * 1e-9;
    if (const auto flops = m_context.job.workload.flops.evaluateReal(bindings); flops && seconds > 0)
        m_trial.achievedFlops = *flops / seconds;
    if (const auto bytes = m_context.job.workload.bytes.evaluateReal(bindings); bytes && seconds > 0)
        m_trial.achievedBytes = *bytes / seconds;
    note("rounds", std::to_string(candidate.ns.size()));
    note("runs_a_sample", std::to_string(candidate.repeats));
    note("buffer_sets", std::to_string(m_sets.size()));
    note("stopped_by", outcome.stopReason);
    note("aa_spread", spread ? percent(*spread) : "not measured: fewer than ten rounds");
    note("least_change", percent(significantChange(spread)));
    const auto environment = m_context.session.environment();
    if (!environment)
        return failed(environment.error(), Culprit::Candidate);
    // As it is after timing; what was known before and is not said again (compiler, host) stays.
    auto before = std::move(m_trial.environment.facts);
    m_trial.environment = *environment;
    m_trial.environment.facts.merge(before);
    for (const auto &[provider, version] : m_versions)
        m_trial.environment.facts[provider] = version;
    return compare(spread);
}

tl::expected<void, ProfileEnd> Profiler::run(const ProfileRequest &request)
{
    m_sets.reserve(maxSets);
    m_context.report(Stage::Profile, 0, "preparing buffers");
    if (auto made = makeSets(); !made)
        return made;
    if (auto added = addCandidate(); !added)
        return added;
    if (request.withParent && !m_context.job.request.parentText.empty()) {
        if (auto added = addParent(); !added)
            return added;
    }
    if (request.withReference && m_context.job.request.withReference) {
        if (auto added = addReferences(); !added)
            return added;
    }
    for (CheckedSet &set : m_sets) {
        if (auto armed = set.arm(Fill::Nan); !armed)
            return failed(armed.error(), Culprit::Candidate);
    }
    const auto blamed = [&](const RoundFailure &failure) {
        return failed(failure.failure, culpritOf(failure.subject));
    };
    if (auto estimated = estimate(m_subjects, m_sets.size(), m_context); !estimated)
        return blamed(estimated.error());
    const GateRequest &wanted = m_context.job.request;
    const auto outcome =
        runRounds(m_subjects, {wanted.minRounds, wanted.targetHalfWidth, wanted.profileSeconds}, m_context);
    if (!outcome)
        return blamed(outcome.error());
    m_context.report(Stage::Profile, 1, "checking the outputs of timed runs");
    if (auto checked = recheck(); !checked)
        return checked;
    return finish(*outcome);
}

} // namespace

tl::expected<void, ProfileEnd> profileCandidate(PreparedCandidate &candidate,
                                                const CorrectnessResult &correct, CompilerSession &compiler,
                                                const ProfileRequest &request, const TrialContext &context,
                                                NoiseFloors &noise, Trial &trial)
{
    return Profiler(candidate, correct, compiler, context, noise, trial).run(request);
}

} // namespace klineage::gate
