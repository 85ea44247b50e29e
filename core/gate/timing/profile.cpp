// SPDX-License-Identifier: GPL-3.0-or-later
//
// Rounds come in blocks. Before each block the buffers are drawn anew and every module is loaded again, in another order; within it the
// sides run over the same buffers (on a processor: the same contents, each in its worker, sideworker.h), whose outputs and workspaces are
// refilled before each sample. Between any two of them there may be a decoy, whose results are known.
#include "core/gate/timing/profiler.h"

#include "core/base/numbertext.h"
#include "core/base/random.h"
#include "core/device/cuda/helperkernels.h"
#include "core/files/sha256.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/timing/clockcheck.h"
#include "core/gate/timing/setcount.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr std::size_t usualBlocks = 6;
constexpr double deviceSampleNs = 200e3;
constexpr double hostSampleNs = 2e6;
constexpr std::size_t largeSetBytes = std::size_t{4} << 20;
constexpr double deadlineMarginSeconds = 2;
constexpr double refilledASecond = 2e9; ///< bytes of shared workspaces
constexpr int replayChecks = 5;
constexpr int fewestReplayChecks = 2;
constexpr double replayCheckNs = 250e6; ///< of each kind, beyond the fewest
constexpr double replayTolerance = 0.05;
constexpr const char *replayNote = "launched_one_by_one";
// What launching one by one may add to a run: 5.9 µs was seen of an honest kernel, and of 1,200 trials on an H200 mostly 1.5 µs; and for
// each further launch, of which sixteen that begin early took 3.3 µs each more.
constexpr double firstLaunchNs = 8000;
constexpr double nextLaunchNs = 4000;
constexpr double energySeconds = 1.5;
constexpr double clockRunNs = 20e6;        ///< least length of one sample of the clock check
constexpr double clockCheckNs = 60e6;      ///< least length of the whole of it, in the first block
constexpr double laterClockCheckNs = 20e6; ///< and in those after it
constexpr int clockAttempts = 5;
constexpr double clockShare = 0.7;    ///< of what a run takes there: less is not believed
constexpr double clockSlackNs = 50e3; ///< between two launches

std::string percent(double ratio)
{
    return significantText(std::round(ratio * 1e5) / 1e3, 6) + " %";
}

/// As a trial keeps them, in whole picoseconds: the digits below come from dividing, not from a clock.
std::vector<double> kept(std::vector<double> ns)
{
    for (double &value : ns)
        value = std::round(value * 1e3) / 1e3;
    return ns;
}

Where whereOf(const TrialContext &context, const CorrectnessResult &correct)
{
    Where where;
    where.stage = Stage::Profile;
    where.caseName = context.job.workload.cases.front().name;
    where.shape = shapeText(context.job.workload.cases.front());
    where.seed = correct.timed.front()->seed;
    return where;
}

/// Operations or bytes of the timed case, whichever are more.
double workOf(const workload::Workload &workload)
{
    const kernel::Bindings bindings = workload.bindings(workload.cases.front());
    return std::max(workload.flops.evaluateReal(bindings).value_or(0),
                    workload.bytes.evaluateReal(bindings).value_or(0));
}

/// The contents that decoys may have besides the seeds': of much work one of them.
std::vector<CaseInstancePtr> hardOf(const CorrectnessResult &correct, const workload::Workload &workload)
{
    if (isLittleWork(workload) || correct.hard.size() < 2)
        return correct.hard;
    return {correct.hard[entropy() % correct.hard.size()]};
}

} // namespace

Profiler::Profiler(PreparedCandidate &candidate, const CorrectnessResult &correct, CompilerSession &compiler,
                   const TrialContext &context, NoiseFloors &noise, Trial &trial)
    : m_candidate(candidate)
    , m_correct(correct)
    , m_compiler(compiler)
    , m_context(context)
    , m_noise(noise)
    , m_trial(trial)
    , m_where(whereOf(context, correct))
    , m_work(workOf(context.job.workload))
    , m_buffers(context.session, context.job.workload, correct.unseen, context.judge,
                hardOf(correct, context.job.workload))
    , m_outputs(m_buffers, [this](std::size_t set) { return computeSet(set); })
    , m_sides(candidate, correct, compiler, context, m_buffers, m_outputs, trial, m_where)
    , m_subjects(m_sides.subjects())
    , m_precision(correct.precision)
{}

Profiler::Step Profiler::installHelpers()
{
    const kernel::DeviceTraits &device = m_candidate.candidate.surface.device();
    if (!device.helperKernels)
        return {};
    const auto target = device.target(m_context.session.helloEnvironment().platform);
    const auto compiled = m_compiler.compile(
        {kernel::toString(kernel::surfaceOn(device.kind)), cuda::helperKernels, "gate.cu", {}, target},
        m_context.deadline.secondsLeft(), m_context.stop);
    if (!compiled)
        return tl::unexpected(ProfileEnd{environmentEnd(compiled.error()), Culprit::Candidate});
    if (!compiled->ok)
        return tl::unexpected(
            ProfileEnd{Error{ErrorCode::Internal, "Cannot compile the gate's own kernels for " + target + ".",
                             compiled->log},
                       Culprit::Candidate});
    if (auto installed = m_context.session.installHelpers(compiled->binary); !installed)
        return tl::unexpected(ProfileEnd{environmentEnd(installed.error()), Culprit::Candidate});
    return {};
}

int Profiler::roundsPerBlock(double secondsLeft) const
{
    const GateRequest &wanted = m_context.job.request;
    const int usual = std::max(1, wanted.minRounds / static_cast<int>(usualBlocks));
    const double refills = 2.0 * static_cast<double>(m_subjects.size() * m_sides.sharedBytes());
    const double seconds = std::max(1e-9 * roundNs(m_subjects) + refills / refilledASecond, 1e-6);
    const double blocksLeft =
        std::max(1.0, static_cast<double>(usualBlocks) - static_cast<double>(m_state.blockEnds.size()));
    return std::clamp(static_cast<int>(secondsLeft / blocksLeft / seconds), 1, usual);
}

/// What a worker says of its own clock is compared with the supervisor's: a kernel that runs in the worker's process could change it, at
/// once or later. So it is done in every block, for the candidate and for one of the plans elsewhere in turn.
Profiler::Step Profiler::checkClock(bool first)
{
    if (!m_candidate.candidate.surface.device().isHost)
        return {};
    if (first)
        return checkClockOf(0, m_correct.roughNs, clockCheckNs);
    std::vector<std::size_t> checked{0};
    if (const auto others = m_sides.plansElsewhere(); !others.empty())
        checked.push_back(others[entropy() % others.size()]);
    for (const std::size_t subject : checked) {
        if (auto agrees = checkClockOf(subject, m_subjects[subject].estimateNs, laterClockCheckNs); !agrees)
            return agrees;
    }
    return {};
}

Profiler::Step Profiler::checkClockOf(std::size_t subject, double runNs, double leastNs)
{
    const TimedSide &side = m_sides.sides()[subject];
    const int repeats = static_cast<int>(std::clamp(std::min(clockRunNs, leastNs / 2) / std::max(runNs, 1.0),
                                                    1.0, static_cast<double>(m_state.sets)));
    ClockReadings readings;
    for (int attempt = 0; attempt < clockAttempts; ++attempt) {
        const auto taken =
            readClock(side.worker()->session(), m_subjects[subject].id, repeats, leastNs, m_context.deadline);
        if (!taken)
            return failed(taken.error(), side.culprit());
        readings = *taken;
        if (!clocksAgree(readings))
            continue;
        const double ns = readings.claimed / (readings.samples * repeats);
        if (subject == 0)
            m_clockNs = m_clockNs > 0 ? std::min(m_clockNs, ns) : ns;
        return {};
    }
    Where where = m_where;
    where.subject = side.culprit() == Culprit::Parent ? "parent" : "candidate";
    return tl::unexpected(
        ProfileEnd{clockVerdict(readings.claimed, readings.elapsed, where), side.culprit()});
}

/// Graph replay must not flatter: the same runs, launched one by one, have to take about as long.
/// A difference that does not come again is noise: who is quick in graphs alone is so each time.
Profiler::Step Profiler::checkReplay()
{
    constexpr int tries = 3;
    if (!m_candidate.candidate.surface.device().replaysRuns)
        return {};
    Step checked;
    for (int i = 0; i < tries; ++i) {
        bool isSuspect = false;
        checked = compareReplays(isSuspect);
        if (!isSuspect)
            break;
    }
    return checked;
}

/// What was forgiven for launching must not be what a gain is made of: it has to be there where both are launched one by one.
Profiler::Step Profiler::launchParent()
{
    const auto parent = std::find_if(m_subjects.begin(), m_subjects.end(),
                                     [](const TimedSubject &subject) { return subject.name == "parent"; });
    if (!m_forgiven || parent == m_subjects.end())
        return {};
    const auto index = static_cast<std::size_t>(parent - m_subjects.begin());
    const double sampleNs = std::max(1.0, parent->estimateNs * parent->repeats);
    const std::uint64_t content = entropy() | 1;
    const std::vector<TimedRun> runs(replayChecks,
                                     {parent->id, 0, parent->repeats, fillWord(entropy()), false, content});
    const auto taken =
        m_context.session.time(runs, m_context.launchLimitSeconds + 5e-9 * sampleNs * replayChecks);
    if (!taken)
        return failed(taken.error(), Culprit::Parent);
    std::vector<double> ns;
    for (std::size_t i = 0; i < taken->size(); ++i) {
        if (auto looked = look(index, runs[i], (*taken)[i]); !looked)
            return blame(looked.error());
        ns.push_back((*taken)[i].ns);
    }
    m_parentLaunchedNs = median(ns);
    return {};
}

/// isSuspect: runs take longer launched one by one, by more than launching explains.
Profiler::Step Profiler::compareReplays(bool &isSuspect)
{
    const TimedSubject &candidate = m_subjects.front();
    const double sampleNs = std::max(1.0, candidate.estimateNs * candidate.repeats);
    const int checks =
        std::clamp(static_cast<int>(replayCheckNs / sampleNs), fewestReplayChecks, replayChecks);
    const std::uint64_t content = entropy() | 1; // one for all, so that they can be compared
    std::vector<TimedRun> runs;
    for (int i = 0; i < 2 * checks; ++i)
        runs.push_back({candidate.id, 0, candidate.repeats, fillWord(entropy()), i % 2 == 0, content});
    const double limit = m_context.launchLimitSeconds + 5e-9 * sampleNs * 2 * checks;
    const auto taken = m_context.session.time(runs, limit);
    if (!taken)
        return failed(taken.error(), Culprit::Candidate);
    std::vector<double> replayed;
    std::vector<double> launched;
    for (std::size_t i = 0; i < taken->size(); ++i) {
        if (auto looked = look(0, runs[i], (*taken)[i]); !looked)
            return blame(looked.error());
    }
    for (std::size_t i = 0; i < taken->size(); ++i)
        (runs[i].replay ? replayed : launched).push_back((*taken)[i].ns);
    // Who does ahead what he can in most samples, and not in these, is as quick as most.
    const double quick =
        std::min(median(replayed), candidate.ns.empty() ? median(replayed) : median(candidate.ns));
    const double excess = median(launched) - quick;
    const auto plan = resolveFor(m_candidate, m_context, timedCase());
    const std::size_t launches = plan ? std::max<std::size_t>(1, plan->launches.size()) : 1;
    const double allowed = firstLaunchNs + nextLaunchNs * static_cast<double>(launches - 1);
    std::erase_if(m_trial.verdict.evidence, [](const Evidence &said) { return said.name == replayNote; });
    note(replayNote, durationText(median(launched), 3) + ", replayed " + durationText(quick, 3));
    isSuspect = excess > replayTolerance * quick && excess > allowed;
    m_forgiven = !isSuspect && excess > replayTolerance * quick;
    m_launchedNs = median(launched);
    if (isSuspect)
        return tl::unexpected(
            ProfileEnd{replayVerdict(quick, median(launched), m_where), Culprit::Candidate});
    return {};
}

Profiler::Step Profiler::measureEnergy()
{
    if (!m_context.job.request.energy)
        return {};
    const TimedSubject &candidate = m_subjects.front();
    m_context.report(Stage::Profile, 1, "measuring energy");
    const TimedRun run{candidate.id, 0, candidate.repeats, 0, true};
    const auto reading = m_context.session.energy(run, energySeconds);
    if (!reading) {
        if (!m_context.session.alive())
            return failed(reading.error(), Culprit::Candidate);
        note("energy", "not measured: " + reading.error().error.message);
        return {};
    }
    m_trial.metrics.push_back({"energy", reading->joules / static_cast<double>(reading->runs), "J", ""});
    m_trial.metrics.push_back(
        {"energy_resolution", reading->resolutionJoules / static_cast<double>(reading->runs), "J", ""});
    m_trial.metrics.push_back({"power", reading->joules / reading->seconds, "W", ""});
    return {};
}

Profiler::Step Profiler::measureBlock(const process::Deadline &limit)
{
    const double secondsLeft = std::max(0.0, limit.secondsLeft());
    const auto begin = std::chrono::steady_clock::now();
    if (auto placed = m_sides.place(); !placed)
        return placed;
    const bool first = m_state.blockEnds.empty();
    if (auto warm = warmUp(m_subjects, m_state, m_context); !warm)
        return blame(warm.error());
    if (first) {
        const auto info = m_context.session.subjectInfo(m_subjects.front().id);
        if (!info)
            return failed(info.error(), Culprit::Candidate);
        m_trial.metrics.insert(m_trial.metrics.end(), info->metrics.begin(), info->metrics.end());
    }
    if (auto checked = checkClock(first); !checked)
        return checked;
    if (auto ran = runBlock(m_subjects, roundsPerBlock(secondsLeft), m_state, m_context); !ran)
        return blame(ran.error());
    if (auto clean = checkGlobals(m_candidate, *m_sides.sides().front().module(), m_context, m_where); !clean)
        return tl::unexpected(ProfileEnd{clean.error(), Culprit::Candidate});
    decideStop(limit);
    const std::chrono::duration<double> spent = std::chrono::steady_clock::now() - begin;
    if (auto closer = lookCloser(spent.count()); !closer)
        return closer;
    if (!m_stoppedBy.empty()) {
        if (auto checked = checkReplay(); !checked)
            return checked;
        if (auto launched = launchParent(); !launched)
            return launched;
        if (auto measured = measureEnergy(); !measured)
            return measured;
    }
    return m_sides.remove();
}

/// As this trial's copy of the candidate shows it, or as an earlier trial of it found.
std::optional<double> Profiler::spread() const
{
    if (const auto own = copySpread(m_subjects, m_state); own && m_state.blockEnds.size() >= fewestBlocks)
        return own;
    const auto known = m_noise.find(noiseKey());
    return known == m_noise.end() ? std::nullopt : std::optional(known->second);
}

void Profiler::decideStop(const process::Deadline &limit)
{
    const GateRequest &wanted = m_context.job.request;
    const std::size_t rounds = m_subjects.front().ns.size();
    const std::size_t blocks = m_state.blockEnds.size();
    const double width = blocks >= 2 ? widestHalfWidth(m_subjects, m_state) : 0;
    const std::string text = "round " + std::to_string(rounds) + ", ±" + fixedText(100 * width, 2) + " %"
                             + (wanted.targetHalfWidth > 0 && !wanted.quick
                                    ? ", until ±" + fixedText(100 * wanted.targetHalfWidth, 2) + " %"
                                    : std::string());
    m_context.report(Stage::Profile,
                     std::min(1.0, 1.0 - limit.secondsLeft() / std::max(wanted.profileSeconds, 0.1)), text);
    const StopRule rule{wanted.minRounds, wanted.targetHalfWidth, wanted.quick, limit.passed(),
                        m_context.deadline.secondsLeft() < deadlineMarginSeconds / 2};
    const bool compared = !wanted.parentText.empty();
    m_stoppedBy = stopReason(m_subjects, m_state, rule, width, compared ? spread() : std::nullopt);
}

Profiler::Step Profiler::measure()
{
    const auto limit = process::Deadline::in(std::min(
        m_context.job.request.profileSeconds, m_context.deadline.secondsLeft() - deadlineMarginSeconds));
    while (m_stoppedBy.empty()) {
        if (auto measured = measureBlock(limit); !measured)
            return measured;
    }
    return {};
}

Profiler::Step Profiler::compare(std::optional<double> spread)
{
    const TimedSubject &candidate = m_subjects.front();
    for (const TimedSubject &subject : m_subjects) {
        m_trial.samples.push_back({subject.name, kept(subject.ns)});
        if (subject.name == "candidate" || subject.name == "copy")
            continue;
        Comparison comparison;
        comparison.against = subject.name;
        comparison.subject = subject.name == "parent" ? files::sha256Hex(m_context.job.request.parentText)
                                                      : m_sides.versions().at(subject.name);
        comparison.speedup =
            blockedMedian(pairedRatios(subject.ns, candidate.ns), m_state.blockEnds, 1, finalResamples);
        comparison.otherNs = median(subject.ns);
        comparison.change = decide(comparison.speedup, subject.ns.size(), spread);
        if (comparison.change == Change::Gain
            && losesOnAverage(subject.ns, candidate.ns,
                              m_trial.surface.device().isHost ? farOnHost : farOnDevice)) {
            comparison.change = Change::NoGain;
            note("mean", "no gain over " + subject.name
                             + " on average: few samples of the candidate take far longer than its others");
        }
        if (subject.name == "parent") {
            comparePrecision(comparison);
            compareClock(comparison);
            compareLaunched(comparison);
        }
        m_trial.verdict.comparisons.push_back(std::move(comparison));
    }
    return {};
}

/// A gain that comes with far fewer bits than the parent's results have is none yet: the tolerance says what is right, not what was given up.
void Profiler::comparePrecision(Comparison &comparison)
{
    const auto parents = m_sides.parentPrecision().rootMeanSquares();
    for (const auto &[name, own] : m_precision.rootMeanSquares()) {
        const auto parent = parents.find(name);
        const auto *output = m_context.job.workload.findTensor(name);
        if (parent == parents.end() || !output)
            continue;
        const double allowed =
            precisionAllowed(m_context.job.workload, *output,
                             m_correct.timed.front()->expected.at(name).size(), parent->second);
        const std::string said = name + " is off by " + significantText(own, 2)
                                 + " before it is rounded, the parent's by "
                                 + significantText(parent->second, 2);
        note("precision", said);
        if (own <= allowed || comparison.change != Change::Gain)
            continue;
        comparison.change = Change::Undecided;
        note("less_precise", said + "; a gain may not come with more than " + significantText(allowed, 2)
                                 + " unless the workload says rounds_between = true");
    }
}

/// A run whose start and end are told one by one is cold; where only the whole of many is told, and the supervisor's clock agreed, it is not. So
/// the first takes no less, unless somebody changed what is told of it.
void Profiler::compareClock(Comparison &comparison)
{
    const double told = median(m_subjects.front().ns);
    if (comparison.change != Change::Gain || m_clockNs <= 0 || told + clockSlackNs > clockShare * m_clockNs)
        return;
    comparison.change = Change::Undecided;
    note("clock", "runs take " + durationText(told, 3) + " one by one, and " + durationText(m_clockNs, 3)
                      + " where the supervisor's clock is beside them");
}

void Profiler::compareLaunched(Comparison &comparison)
{
    if (comparison.change != Change::Gain || m_parentLaunchedNs <= 0
        || m_parentLaunchedNs > m_launchedNs * (1 + significantChange(std::nullopt)))
        return;
    comparison.change = Change::Undecided;
    note("only_replayed", "launched one by one a run takes " + durationText(m_launchedNs, 3)
                              + ", the parent's " + durationText(m_parentLaunchedNs, 3));
}

Profiler::Step Profiler::finish()
{
    const TimedSubject &candidate = m_subjects.front();
    const std::optional<double> spread = this->spread();
    if (spread && m_stoppedBy != "decided") // which knows it too roughly for the next trial
        m_noise[noiseKey()] = *spread;
    m_trial.latencyNs = blockedMedian(candidate.ns, m_state.blockEnds, 1, finalResamples);
    const kernel::Bindings bindings = m_context.job.workload.bindings(timedCase());
    const double seconds = m_trial.latencyNs.value * 1e-9;
    if (const auto flops = m_context.job.workload.flops.evaluateReal(bindings); flops && seconds > 0)
        m_trial.achievedFlops = *flops / seconds;
    if (const auto bytes = m_context.job.workload.bytes.evaluateReal(bindings); bytes && seconds > 0)
        m_trial.achievedBytes = *bytes / seconds;
    note("rounds", std::to_string(candidate.ns.size()));
    note("runs_a_sample", std::to_string(candidate.repeats));
    note("blocks", std::to_string(m_state.blockEnds.size()));
    note("buffer_sets", std::to_string(m_state.sets));
    note("timed_outputs", "looked at after " + std::to_string(m_outputs.launches()) + " launches"
                              + (m_outputs.varies(0) ? "; not always the same bits" : ""));
    note("contents_computed",
         std::to_string(m_correct.unseen.size() + m_outputs.computed()) + " of the timed runs' contents");
    if (m_state.discarded > 0)
        note("discarded_rounds", std::to_string(m_state.discarded));
    note("stopped_by", m_stoppedBy);
    if (const auto plan = resolveFor(m_candidate, m_context, timedCase());
        plan && !plan->launches.empty() && plan->launches.front().programmaticDependent)
        note("pdl", "not used for the first launch: a timed run begins when the one before has ended");
    note("aa_spread", spread       ? percent(*spread)
                      : m_compares ? "not measured: too few blocks"
                                   : "not measured: nothing is compared");
    note("least_change", percent(significantChange(spread)));
    const auto environment = m_context.session.environment();
    if (!environment)
        return failed(environment.error(), Culprit::Candidate);
    // As it is after timing; what was known before and is not said again (compiler, host) stays.
    auto before = std::move(m_trial.environment.facts);
    m_trial.environment = *environment;
    m_trial.environment.facts.merge(before);
    for (const auto &[provider, version] : m_sides.versions())
        m_trial.environment.facts[provider] = version;
    if (!m_state.clocksMhz.empty())
        m_trial.environment.facts["timed_sm_clock_mhz"] =
            significantText(std::round(median(m_state.clocksMhz)), 6);
    return compare(spread);
}

tl::expected<void, ProfileEnd> Profiler::run(const ProfileRequest &request)
{
    m_context.report(Stage::Profile, 0, "preparing buffers");
    if (auto installed = installHelpers(); !installed)
        return installed;
    if (m_candidate.candidate.surface.device().isHost) {
        // A processor's memory gets faster and slower from one moment to the next, so that many short samples side by side tell more than
        // a few long ones. Where the sets are small a sample is a whole rotation nevertheless: what is refilled for a few of them would
        // still be in the cache.
        m_state.sampleNs = hostSampleNs;
        m_state.copyApart = true;
        if (CheckedSet::tensorBytes(*m_correct.timed.front()) >= largeSetBytes)
            m_state.rotationNs = hostSampleNs;
    } else {
        m_state.sampleNs = deviceSampleNs;
        m_state.slowRotationNs = 0;
    }
    m_state.sets = setCount(m_candidate, m_correct, m_context, m_state.sampleNs);
    m_state.look = [this](std::size_t subject, const TimedRun &run, const TimedSample &sample) {
        return look(subject, run, sample);
    };
    m_decoyContents = drawContents(m_buffers, isLittleWork(m_context.job.workload));
    m_state.decoys = [this] { return decoys(); };
    m_state.lookCloser = [this](const TimedRun &run) { return lookAtOne(run); };
    const auto allocated = [&] {
        const OwnTime own(m_context, OwnTime::Work::Transfers);
        return m_buffers.allocate(m_state.sets);
    }();
    if (!allocated)
        return failed(allocated.error(), Culprit::Candidate);
    // Where nothing is compared nobody asks how far two copies seem apart.
    m_compares = (request.withParent && !m_context.job.request.parentText.empty())
                 || (request.withReference && m_context.job.request.withReference && m_sides.hasReferences());
    if (auto added = m_sides.addCandidate(m_compares && !m_noise.contains(noiseKey())); !added)
        return added;
    const bool host = m_candidate.candidate.surface.device().isHost;
    if (request.withParent && !m_context.job.request.parentText.empty()) {
        if (auto prepared = m_sides.prepareParent(); !prepared)
            return prepared;
        if (!host) {
            if (auto added = m_sides.addParent(); !added)
                return added;
        }
    }
    if (request.withReference && m_context.job.request.withReference) {
        if (auto added = m_sides.addReferences(); !added)
            return added;
    }
    if (host) { // libraries compile when they are first called, which is done by now; no plan's code has run yet
        if (auto sealed = m_sides.seal(); !sealed)
            return sealed;
        if (auto added = m_sides.addParent(); !added)
            return added;
    }
    if (auto measured = measure(); !measured)
        return measured;
    return finish();
}

tl::expected<void, ProfileEnd> profileCandidate(PreparedCandidate &candidate,
                                                const CorrectnessResult &correct, CompilerSession &compiler,
                                                const ProfileRequest &request, const TrialContext &context,
                                                NoiseFloors &noise, Trial &trial)
{
    trial.seeds.insert(trial.seeds.end(), context.unseenSeeds.begin(), context.unseenSeeds.end());
    return Profiler(candidate, correct, compiler, context, noise, trial).run(request);
}

} // namespace klineage::gate
