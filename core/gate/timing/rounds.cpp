// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/rounds.h"

#include "core/base/random.h"
#include "core/gate/check/randomorder.h"
#include "core/gate/timing/decoys.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <map>

namespace klineage::gate {

namespace {

constexpr double oneMessageNs = 20e6;
/// Samples of one side in a round whose clocks differ by more than this are not comparable.
constexpr double steadyClock = 1.02;
constexpr int mostDiscards = 200;
constexpr std::size_t mostRounds = 3000;
constexpr int firstDiscards =
    20; ///< and no more than these and the rounds that were kept: a clock that never rests is no reason to wait
constexpr double slower = 4;
constexpr double settledShare = 2;
constexpr double longSampleNs = 50e6;
/// A comparison that is open goes on to this relative half-width, at which half a percent is told from three thousandths.
constexpr double nearHalfWidth = 0.0008;

struct Sample {
    std::size_t subject = 0;
    TimedRun run;
    std::function<RoundResult(const TimedSample &)> judge{}; ///< of a decoy
};

/// Limit of one exchange with the worker: the launch limit, and what the work is expected to take several times over.
double limitFor(const std::vector<Sample> &samples, const std::vector<TimedSubject> &subjects,
                const TrialContext &context)
{
    double ns = 0;
    for (const Sample &sample : samples)
        ns += subjects[sample.subject].estimateNs * sample.run.repeats;
    return context.launchLimitSeconds + 5e-9 * ns;
}

RoundResult look(const std::vector<Sample> &samples, const std::vector<TimedSample> &taken,
                 const RoundState &state)
{
    for (std::size_t i = 0; i < taken.size(); ++i) {
        const Sample &sample = samples[i];
        auto looked = sample.judge ? sample.judge(taken[i])
                      : state.look ? state.look(sample.subject, sample.run, taken[i])
                                   : RoundResult();
        if (!looked)
            return looked;
    }
    return {};
}

bool isOneSubject(const std::vector<Sample> &samples)
{
    return std::all_of(samples.begin(), samples.end(),
                       [&](const Sample &sample) { return sample.subject == samples.front().subject; });
}

/// Samples that one worker takes, in one message.
tl::expected<std::vector<TimedSample>, RoundFailure> takeMessage(const std::vector<Sample> &samples,
                                                                 const std::vector<TimedSubject> &subjects,
                                                                 const RoundState &state,
                                                                 const TrialContext &context)
{
    const TimedSubject &subject = subjects[samples.front().subject];
    const std::size_t blamed = isOneSubject(samples) ? samples.front().subject : 0;
    const double limit = limitFor(samples, subjects, context);
    if (subject.sampler) {
        auto taken = subject.sampler(samples.front().run, limit);
        if (!taken)
            return tl::unexpected(RoundFailure{taken.error(), blamed});
        return std::vector<TimedSample>{std::move(*taken)};
    }
    std::vector<TimedRun> runs;
    for (const Sample &sample : samples)
        runs.push_back(sample.run);
    WorkerSession &worker = subject.worker ? *subject.worker : context.session;
    auto taken = worker.time(runs, limit);
    if (!taken)
        return tl::unexpected(RoundFailure{taken.error(), blamed});
    if (auto looked = look(samples, *taken, state); !looked)
        return tl::unexpected(looked.error());
    return std::move(*taken);
}

/// Takes the samples one by one, which says whose fault a failure is, or (short ones) those that follow each other in one worker in one message. In
/// a further one only those of one side.
tl::expected<std::vector<TimedSample>, RoundFailure> take(const std::vector<Sample> &samples,
                                                          const std::vector<TimedSubject> &subjects,
                                                          bool together, const RoundState &state,
                                                          const TrialContext &context)
{
    const auto travels = [&](const Sample &sample, const Sample &with) {
        const WorkerSession *worker = subjects[sample.subject].worker;
        return together && worker == subjects[with.subject].worker
               && (!worker || sample.subject == with.subject);
    };
    std::vector<TimedSample> results;
    std::vector<Sample> message;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        message.push_back(samples[i]);
        if (i + 1 < samples.size() && travels(samples[i], samples[i + 1]))
            continue;
        auto taken = takeMessage(message, subjects, state, context);
        if (!taken)
            return tl::unexpected(taken.error());
        std::move(taken->begin(), taken->end(), std::back_inserter(results));
        message.clear();
    }
    return results;
}

std::uint64_t drawContent()
{
    return entropy() | 1;
}

TimedRun runOn(const TimedSubject &subject, const RoundState &state, std::uint64_t content)
{
    TimedRun run;
    run.content = content;
    run.subject = subject.id;
    run.repeats = subject.repeats;
    run.fillWord = fillWord(entropy());
    // A whole rotation always begins at the same place, so that one graph serves; the sets are drawn anew for each block anyway.
    const auto repeats = static_cast<std::size_t>(subject.repeats);
    if (repeats < state.sets) {
        const std::size_t window = state.window > 0 ? state.window : state.sets;
        run.first = (state.firstSet + state.visited % window) % state.sets;
    }
    return run;
}

/// All subjects in a random order, then in the opposite one. Who comes first finds the device idle, which costs a thousandth, so the order
/// is not the same twice.
std::vector<Sample> roundOf(std::vector<TimedSubject> &subjects, RoundState &state)
{
    std::vector<std::size_t> order = randomOrder(subjects.size(), entropy);
    std::vector<Sample> samples;
    for (int half = 0; half < 2; ++half) {
        const std::uint64_t content = drawContent();
        const std::uint64_t ofCopy = state.copyApart ? drawContent() : content;
        int most = 0;
        for (const std::size_t subject : order) {
            const bool isCopy = subjects[subject].name == "copy";
            samples.push_back({subject, runOn(subjects[subject], state, isCopy ? ofCopy : content)});
            most = std::max(most, subjects[subject].repeats);
        }
        state.visited += static_cast<std::size_t>(most);
        std::reverse(order.begin(), order.end());
    }
    return samples;
}

/// Sides that are too slow for a whole rotation a sample visit the same sets within a block, each beginning elsewhere: so that what one
/// leaves can be compared with what the others do, and none finds what another one just read.
void beginWindow(std::vector<TimedSubject> &subjects, int rounds, RoundState &state)
{
    std::size_t window = state.sets;
    for (const TimedSubject &subject : subjects)
        window = std::min(window, 2 * static_cast<std::size_t>(rounds)
                                      * static_cast<std::size_t>(std::max(1, subject.repeats)));
    state.firstSet = (state.firstSet + state.window) % state.sets;
    state.window = window;
    state.visited = 0;
}

std::vector<std::size_t> subjectsOf(const std::vector<Sample> &samples)
{
    std::vector<std::size_t> subjects;
    for (const Sample &sample : samples)
        subjects.push_back(sample.subject);
    return subjects;
}

} // namespace

TimedRun furtherRun(const TimedSubject &subject, const RoundState &state)
{
    return runOn(subject, state, drawContent());
}

bool isSteady(const std::vector<TimedSample> &samples, const std::vector<std::size_t> &subjects)
{
    std::map<std::size_t, std::pair<double, double>> ranges;
    for (std::size_t i = 0; i < samples.size(); ++i) {
        const double clock = samples[i].clockMhz;
        if (clock <= 0)
            return true;
        auto &[low, high] = ranges.try_emplace(subjects[i], clock, clock).first->second;
        low = std::min(low, clock);
        high = std::max(high, clock);
    }
    return std::all_of(ranges.begin(), ranges.end(), [](const auto &entry) {
        return entry.second.second <= entry.second.first * steadyClock;
    });
}

void setRepeats(std::vector<TimedSubject> &subjects, const RoundState &state)
{
    double fastest = std::numeric_limits<double>::infinity();
    for (const TimedSubject &subject : subjects)
        fastest = std::min(fastest, std::max(subject.estimateNs, 1.0));
    double slowestOfNear = 0;
    for (const TimedSubject &subject : subjects) {
        if (subject.estimateNs <= slower * fastest)
            slowestOfNear = std::max(slowestOfNear, subject.estimateNs);
    }
    for (TimedSubject &subject : subjects)
        subject.repeats =
            subject.estimateNs <= slower * fastest
                ? repeatsFor(slowestOfNear, state.sets, state.sampleNs, state.rotationNs)
                : repeatsFor(subject.estimateNs, state.sets, state.sampleNs, state.slowRotationNs);
}

int repeatsFor(double runNs, std::size_t sets, double sampleNs, double rotationNs)
{
    const double ns = std::max(runNs, 100.0);
    const auto all = static_cast<double>(sets);
    if (all * ns <= rotationNs)
        return static_cast<int>(sets);
    return static_cast<int>(std::clamp(std::ceil(sampleNs / ns), 1.0, all));
}

double roundNs(const std::vector<TimedSubject> &subjects)
{
    double ns = 0;
    for (const TimedSubject &subject : subjects)
        ns += 2 * subject.estimateNs * subject.repeats;
    return ns;
}

RoundResult warmUp(std::vector<TimedSubject> &subjects, RoundState &state, const TrialContext &context)
{
    const bool first = subjects.front().repeats == 0;
    for (std::size_t i = 0; first && i < subjects.size(); ++i) {
        TimedSubject &subject = subjects[i];
        subject.repeats = 1;
        for (int pass = 0; pass < 2; ++pass) {
            const auto taken = take({{i, furtherRun(subject, state)}}, subjects, false, state, context);
            if (!taken)
                return tl::unexpected(taken.error());
            const double ns = taken->front().ns;
            subject.estimateNs = pass == 0 ? ns : std::min(subject.estimateNs, ns);
        }
    }
    // A run that is alone in its sample may take longer than among others, so what follows from that is looked at again.
    for (int pass = 0; pass < (first ? 2 : 1); ++pass) {
        if (first)
            setRepeats(subjects, state);
        bool isSettled = true;
        for (std::size_t i = 0; i < subjects.size(); ++i) {
            TimedSubject &subject = subjects[i];
            if (subject.estimateNs * subject.repeats > longSampleNs && (!first || subject.repeats == 1))
                continue;
            const auto taken = take({{i, furtherRun(subject, state)}}, subjects, false, state, context);
            if (!taken)
                return tl::unexpected(taken.error());
            isSettled = isSettled && taken->front().ns > subject.estimateNs / settledShare;
            if (first)
                subject.estimateNs = taken->front().ns;
        }
        if (isSettled)
            break;
    }
    return {};
}

namespace {

/// Where the samples of a block are interrupted.
struct Interruptions {
    std::multiset<std::size_t> decoys; ///< before which sample
    std::size_t closer = 0;            ///< which of the first subject's samples is looked closer at
    std::size_t taken = 0;
    std::size_t ofFirst = 0;
};

Interruptions drawInterruptions(std::size_t rounds, std::size_t subjects, const RoundState &state)
{
    Interruptions drawn;
    if (state.decoys)
        drawn.decoys = drawPlaces(2 * rounds * subjects);
    drawn.closer = static_cast<std::size_t>(entropy() % (2 * rounds));
    return drawn;
}

/// Takes the samples; a decoy comes right behind the one before it, in the same message where there are such.
tl::expected<std::vector<TimedSample>, RoundFailure> takeWithDecoys(const std::vector<Sample> &samples,
                                                                    Interruptions &at, bool together,
                                                                    const std::vector<TimedSubject> &subjects,
                                                                    const RoundState &state,
                                                                    const TrialContext &context)
{
    std::vector<TimedSample> results;
    std::vector<Sample> piece;
    const auto send = [&]() -> RoundResult {
        if (piece.empty())
            return {};
        auto taken = take(piece, subjects, together, state, context);
        if (!taken)
            return tl::unexpected(taken.error());
        for (std::size_t i = 0; i < piece.size(); ++i) {
            if (!piece[i].judge)
                results.push_back(std::move((*taken)[i]));
        }
        piece.clear();
        return {};
    };
    const auto sendDecoys = [&]() -> RoundResult {
        for (; at.decoys.contains(at.taken); at.decoys.erase(at.decoys.find(at.taken))) {
            for (const RoundState::Decoy &decoy : state.decoys()) {
                piece.push_back({decoy.subject, decoy.run, decoy.judge});
                if (auto sent = send(); !sent)
                    return sent;
            }
        }
        return {};
    };
    for (const Sample &sample : samples) {
        if (auto sent = sendDecoys(); !sent)
            return tl::unexpected(sent.error());
        piece.push_back(sample);
        ++at.taken;
        if (sample.subject != 0 || at.ofFirst++ != at.closer || !state.lookCloser)
            continue;
        if (auto sent = send(); !sent)
            return tl::unexpected(sent.error());
        if (auto looked = state.lookCloser(sample.run); !looked)
            return tl::unexpected(looked.error());
    }
    // Behind the last one of the block.
    if (at.decoys.size() == at.decoys.count(at.taken)) {
        if (auto sent = sendDecoys(); !sent)
            return tl::unexpected(sent.error());
    }
    if (auto sent = send(); !sent)
        return tl::unexpected(sent.error());
    return results;
}

} // namespace

RoundResult runBlock(std::vector<TimedSubject> &subjects, int rounds, RoundState &state,
                     const TrialContext &context)
{
    const bool together =
        roundNs(subjects) < oneMessageNs
        && std::none_of(subjects.begin(), subjects.end(), [](const auto &s) { return bool(s.sampler); });
    beginWindow(subjects, rounds, state);
    Interruptions interruptions = drawInterruptions(static_cast<std::size_t>(rounds), subjects.size(), state);
    for (int kept = 0; kept < rounds;) {
        const auto samples = roundOf(subjects, state);
        const auto taken = takeWithDecoys(samples, interruptions, together, subjects, state, context);
        if (!taken)
            return tl::unexpected(taken.error());
        if (!isSteady(*taken, subjectsOf(samples))
            && state.discarded
                   < std::min(mostDiscards, firstDiscards + static_cast<int>(subjects.front().ns.size()))) {
            ++state.discarded;
            if (context.stop.stop_requested() || context.deadline.secondsLeft() < 1)
                return {};
            continue;
        }
        std::vector<double> sums(subjects.size(), 0.0);
        for (std::size_t i = 0; i < samples.size(); ++i) {
            sums[samples[i].subject] += (*taken)[i].ns;
            if ((*taken)[i].clockMhz > 0)
                state.clocksMhz.push_back((*taken)[i].clockMhz);
        }
        for (std::size_t i = 0; i < subjects.size(); ++i)
            subjects[i].ns.push_back(0.5 * sums[i]);
        ++kept;
    }
    state.blockEnds.push_back(subjects.front().ns.size());
    return {};
}

double widestHalfWidth(const std::vector<TimedSubject> &subjects, const RoundState &state)
{
    const auto &candidate = subjects.front().ns;
    if (subjects.size() == 1) {
        const Interval own = bootstrapMedian(candidate);
        return halfWidth(own) / own.value;
    }
    double width = 0;
    for (std::size_t i = 1; i < subjects.size(); ++i) {
        const Interval ratio = blockedMedian(pairedRatios(subjects[i].ns, candidate), state.blockEnds);
        width = std::max(width, halfWidth(ratio) / ratio.value);
    }
    return width;
}

namespace {

const TimedSubject *named(const std::vector<TimedSubject> &subjects, const char *name)
{
    const auto found =
        std::find_if(subjects.begin(), subjects.end(), [name](const auto &s) { return s.name == name; });
    return found == subjects.end() ? nullptr : &*found;
}

} // namespace

std::optional<double> copySpread(const std::vector<TimedSubject> &subjects, const RoundState &state)
{
    const TimedSubject *copy = named(subjects, "copy");
    if (!copy)
        return std::nullopt;
    return noiseFloor(
        blockedMedian(pairedRatios(copy->ns, subjects.front().ns), state.blockEnds, 1, finalResamples));
}

std::string stopReason(const std::vector<TimedSubject> &subjects, const RoundState &state,
                       const StopRule &rule, double width, std::optional<double> spread)
{
    const std::size_t rounds = subjects.front().ns.size();
    const std::size_t blocks = state.blockEnds.size();
    if (blocks >= fewestBlocks) {
        const TimedSubject *parent = named(subjects, "parent");
        const auto speedup =
            parent
                ? std::optional(blockedMedian(pairedRatios(parent->ns, subjects.front().ns), state.blockEnds))
                : std::nullopt;
        const bool open =
            speedup && isOpen(*speedup, spread) && halfWidth(*speedup) > nearHalfWidth * speedup->value;
        if (rounds >= static_cast<std::size_t>(rule.minRounds) && width <= rule.targetHalfWidth && !open)
            return "half_width";
        const auto look = lookAfter(blocks, fewestBlocks);
        if (rule.quick && speedup && look && settled(*speedup, blocks, *look, spread))
            return "decided";
        if (rule.timeIsUp)
            return "time_limit";
    }
    return rounds >= mostRounds || rule.mustEnd ? "round_limit" : "";
}

} // namespace klineage::gate
