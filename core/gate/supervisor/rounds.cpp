// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/rounds.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace klineage::gate {

namespace {

constexpr double sampleNs = 200e3;
constexpr double longRotationNs = 5e6;
constexpr int maxRepeats = 2000;
constexpr int maxRounds = 3000;
constexpr std::size_t fewestRounds =
    5; ///< below this an interval means nothing, so a time limit waits for it
constexpr double deadlineMarginSeconds = 2;

/// Limit of one exchange with the worker: the launch limit, and what the work is expected to take several times over.
double limitFor(const std::vector<std::pair<SubjectId, int>> &sequence,
                const std::vector<TimedSubject> &subjects, const TrialContext &context)
{
    double ns = 0;
    for (const auto &[id, repeats] : sequence) {
        for (const TimedSubject &subject : subjects)
            ns += subject.id == id ? subject.estimateNs * repeats : 0;
    }
    return context.launchLimitSeconds + 5e-9 * ns;
}

/// The widest relative half-width of the comparisons with the first subject; of its own latency when it is alone.
double widest(const std::vector<TimedSubject> &subjects)
{
    const auto &candidate = subjects.front().ns;
    if (subjects.size() == 1) {
        const Interval own = bootstrapMedian(candidate);
        return halfWidth(own) / own.value;
    }
    double width = 0;
    for (std::size_t i = 1; i < subjects.size(); ++i) {
        const Interval ratio = bootstrapMedian(pairedRatios(subjects[i].ns, candidate));
        width = std::max(width, halfWidth(ratio) / ratio.value);
    }
    return width;
}

std::vector<std::pair<SubjectId, int>> roundSequence(const std::vector<TimedSubject> &subjects)
{
    std::vector<std::pair<SubjectId, int>> sequence;
    for (const TimedSubject &subject : subjects)
        sequence.emplace_back(subject.id, subject.repeats);
    for (std::size_t i = subjects.size(); i-- > 0;)
        sequence.push_back(sequence[i]);
    return sequence;
}

/// Which subject failed is known only when each is timed alone.
tl::expected<double, RoundFailure> timeOne(const std::vector<TimedSubject> &subjects, std::size_t index,
                                           int repeats, const TrialContext &context)
{
    const std::vector<std::pair<SubjectId, int>> sequence{{subjects[index].id, repeats}};
    const auto ns = context.session.time(sequence, limitFor(sequence, subjects, context));
    if (!ns)
        return tl::unexpected(RoundFailure{ns.error(), index});
    return ns->front();
}

tl::expected<void, RoundFailure> runRound(std::vector<TimedSubject> &subjects, const TrialContext &context)
{
    std::vector<double> sums(subjects.size(), 0.0);
    const auto sequence = roundSequence(subjects);
    const std::size_t count = subjects.size();
    double roundNs = 0;
    for (const TimedSubject &subject : subjects)
        roundNs += 2 * subject.estimateNs * subject.repeats;
    // Short rounds travel in one message, so that nothing happens between their samples; long ones apart, so that a hang is known.
    if (roundNs < 20e6) {
        const auto ns = context.session.time(sequence, limitFor(sequence, subjects, context));
        if (!ns)
            return tl::unexpected(RoundFailure{ns.error(), 0});
        for (std::size_t i = 0; i < ns->size(); ++i)
            sums[i < count ? i : 2 * count - 1 - i] += (*ns)[i];
    } else {
        for (std::size_t i = 0; i < sequence.size(); ++i) {
            const std::size_t subject = i < count ? i : 2 * count - 1 - i;
            const auto ns = timeOne(subjects, subject, sequence[i].second, context);
            if (!ns)
                return tl::unexpected(ns.error());
            sums[subject] += *ns;
        }
    }
    for (std::size_t i = 0; i < count; ++i)
        subjects[i].ns.push_back(0.5 * sums[i]);
    return {};
}

std::string progressText(std::size_t rounds, double width)
{
    char text[80];
    if (width > 0)
        std::snprintf(text, sizeof text, "round %zu, ±%.2f %%", rounds, 100 * width);
    else
        std::snprintf(text, sizeof text, "round %zu", rounds);
    return text;
}

} // namespace

int repeatsFor(double runNs, std::size_t sets)
{
    const double ns = std::max(runNs, 100.0);
    auto repeats =
        static_cast<std::size_t>(std::clamp(std::ceil(sampleNs / ns), 1.0, static_cast<double>(maxRepeats)));
    if (static_cast<double>(sets) * ns < longRotationNs)
        repeats = (repeats + sets - 1) / sets * sets;
    return static_cast<int>(std::min<std::size_t>(repeats, 50'000));
}

tl::expected<void, RoundFailure> estimate(std::vector<TimedSubject> &subjects, std::size_t sets,
                                          const TrialContext &context)
{
    for (std::size_t i = 0; i < subjects.size(); ++i) {
        for (int pass = 0; pass < 2; ++pass) {
            const auto ns = timeOne(subjects, i, 1, context);
            if (!ns)
                return tl::unexpected(ns.error());
            subjects[i].estimateNs = pass == 0 ? *ns : std::min(subjects[i].estimateNs, *ns);
        }
        subjects[i].repeats = repeatsFor(subjects[i].estimateNs, sets);
        if (subjects[i].repeats > 1) {
            const auto ns = timeOne(subjects, i, subjects[i].repeats, context);
            if (!ns)
                return tl::unexpected(ns.error());
            subjects[i].estimateNs = *ns;
        }
    }
    return {};
}

tl::expected<RoundsOutcome, RoundFailure> runRounds(std::vector<TimedSubject> &subjects,
                                                    const RoundLimits &limits, const TrialContext &context)
{
    const auto timeLimit = process::Deadline::in(
        std::min(limits.seconds, context.deadline.secondsLeft() - deadlineMarginSeconds));
    double width = 0;
    std::size_t rounds = 0;
    for (;;) {
        if (auto done = runRound(subjects, context); !done)
            return tl::unexpected(done.error());
        rounds = subjects.front().ns.size();
        const bool looked = rounds % 10 == 0 || timeLimit.passed();
        if (looked && rounds >= fewestRounds)
            width = widest(subjects);
        context.report(Stage::Profile,
                       std::min(1.0, 1.0 - timeLimit.secondsLeft() / std::max(limits.seconds, 0.1)),
                       progressText(rounds, width));
        if (looked && rounds >= static_cast<std::size_t>(limits.minRounds) && width <= limits.targetHalfWidth)
            return RoundsOutcome{"half_width"};
        if (timeLimit.passed() && rounds >= fewestRounds)
            return RoundsOutcome{"time_limit"};
        if (rounds >= maxRounds)
            return RoundsOutcome{"round_limit"};
    }
}

} // namespace klineage::gate
