// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/correctness.h"

#include "core/base/random.h"
#include "core/gate/check/hardcontent.h"
#include "core/gate/check/shapes.h"

#include <algorithm>
#include <chrono>
#include <span>

namespace klineage::gate {

namespace {

using Clock = std::chrono::steady_clock;

/// Shapes are drawn here, after the candidate was fixed.
CheckStep drawnStep(const workload::Case &c, std::uint64_t seed)
{
    if (c.drawn.empty())
        return {&c, seed};
    auto drawn = std::make_shared<const workload::Case>(drawCase(c, seed));
    const workload::Case *shape = drawn.get();
    return {shape, seed, false, false, std::move(drawn)};
}

std::vector<CheckStep> stepsOf(const TrialContext &context)
{
    std::vector<CheckStep> steps;
    const auto &cases = context.job.workload.cases;
    const auto &replayed = context.job.request.replaySeeds;
    for (std::size_t i = 1; i < cases.size(); ++i)
        steps.push_back(drawnStep(cases[i], i <= replayed.size() ? replayed[i - 1] : entropy()));
    for (const std::uint64_t seed : context.timedSeeds)
        steps.push_back({&cases.front(), seed, true});
    const std::uint64_t seed = steps.back().seed;
    const workload::Workload &workload = context.job.workload;
    std::vector<workload::Case> hard =
        context.hardLast ? hardContents(workload, seed) : std::vector<workload::Case>();
    // Each takes the place of a seed, but for little work, where all of them take that of the last. The first of three, where nothing looks
    // hard, is there whenever there are seeds for two. Of modest work the first six are, and one more.
    const bool little = isLittleWork(workload);
    const std::size_t room = context.timedSeeds.size() > 2 ? 2 : 1;
    const std::size_t sure = isModestWork(workload) ? room + 4 : room - 1;
    const std::size_t replaced = std::min(hard.size(), little ? 1 : room);
    if (!little && hard.size() > sure + 1) {
        hard[sure] = hard[sure + seed % (hard.size() - sure)];
        hard.resize(sure + 1);
    }
    steps.erase(steps.end() - static_cast<std::ptrdiff_t>(replaced), steps.end());
    const auto add = [&](workload::Case c, std::uint64_t own, bool isHard) {
        auto kept = std::make_shared<const workload::Case>(std::move(c));
        steps.push_back({kept.get(), own, false, true, kept, isHard});
    };
    for (std::size_t i = 0; i < hard.size(); ++i) {
        const std::size_t place = context.timedSeeds.size() - replaced + i;
        add(std::move(hard[i]), little || i >= replaced ? seed : context.timedSeeds[place], true);
    }
    if (auto longer = longerRows(workload, seed))
        add(std::move(*longer), seed, false);
    steps.back().last = true;
    return steps;
}

Result<CaseInstancePtr> takeNext(CaseQueue &queue, const TrialContext &context)
{
    const OwnTime own(context, OwnTime::Work::Oracle);
    const StageTime stage(context.clock, &StageSeconds::oracle);
    return queue.take();
}

StageResult<void> checkStep(const CheckStep &step, const CaseInstancePtr &instance,
                            const PreparedCandidate &prepared, ModuleId module, const TrialContext &context,
                            CorrectnessResult &result)
{
    const auto plan = resolveFor(prepared, context, *step.theCase);
    if (!plan)
        return tl::unexpected(plan.error());
    Where where;
    where.subject = prepared.label;
    where.caseName = step.theCase->name;
    where.shape = shapeText(*step.theCase);
    where.seed = step.seed;
    const auto failed = [&](const WorkerFailure &failure) -> tl::unexpected<TrialEnd> {
        if (failure.kind == FailureKind::Candidate)
            return tl::unexpected<TrialEnd>(launchVerdict(failure.error, where));
        return tl::unexpected(failureEnd(failure, where));
    };
    CheckedSet set(context.session, instance, context.judge);
    if (auto allocated = set.allocateTensors(); !allocated)
        return tl::unexpected(failureEnd(allocated.error(), where));
    const auto bindings = set.addPlan(*plan);
    if (!bindings)
        return failed(bindings.error());
    const auto subject = context.session.addPlan(module, *plan, {*bindings});
    if (!subject)
        return failed(subject.error());
    for (const Fill fill : {step.last ? Fill::Word : Fill::Nan, Fill::Garbage}) {
        const Look look = fill == Fill::Garbage ? Look::Everything : Look::ForNow;
        if (auto checked = checkedRun(set, *subject, 0, fill, where, context, &result.roughNs, look);
            !checked)
            return tl::unexpected(checked.error());
    }
    if (step.timed)
        result.precision.add(set.precision());
    if (auto clean = checkGlobals(prepared, module, context, where); !clean)
        return tl::unexpected(clean.error());
    if (auto removed = context.session.removeSubject(*subject); !removed)
        return failed(removed.error());
    if (auto released = set.release(); !released)
        return failed(released.error());
    return {};
}

/// All that the steps need is compiled before any of the candidate's code runs, and after that the worker can compile and load no more.
StageResult<void> primeAndSeal(std::span<const CheckStep> steps, const PreparedCandidate &prepared,
                               ModuleId module, const TrialContext &context)
{
    if (!prepared.candidate.surface.device().isHost)
        return {};
    for (const CheckStep &step : steps) {
        Where where;
        where.stage = Stage::Compile;
        where.subject = prepared.label;
        where.caseName = step.theCase->name;
        const auto plan = resolveFor(prepared, context, *step.theCase);
        if (!plan)
            return tl::unexpected(plan.error());
        if (auto primed = context.session.prime(module, *plan); !primed) {
            if (primed.error().kind == FailureKind::Candidate)
                return tl::unexpected<TrialEnd>(launchVerdict(primed.error().error, where));
            return tl::unexpected(workerCompileEnd(primed.error(), where, context));
        }
    }
    const auto sealed = context.session.seal(false);
    if (!sealed)
        return tl::unexpected(failureEnd(sealed.error(), {}));
    return {};
}

} // namespace

StageResult<void> checkedRun(CheckedSet &set, SubjectId subject, std::size_t setIndex, Fill fill,
                             const Where &where, const TrialContext &context, double *elapsedNs, Look look)
{
    const auto armed = [&] {
        const OwnTime own(context, OwnTime::Work::Transfers);
        return set.arm(fill);
    }();
    if (!armed)
        return tl::unexpected(failureEnd(armed.error(), where));
    const auto begin = Clock::now();
    if (auto ran = context.session.run(subject, setIndex, context.launchLimitSeconds); !ran)
        return tl::unexpected(failureEnd(ran.error(), where));
    if (elapsedNs)
        *elapsedNs = std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
    const auto finding = [&] {
        const OwnTime own(context, OwnTime::Work::Transfers);
        return set.inspect(look);
    }();
    if (!finding)
        return tl::unexpected(failureEnd(finding.error(), where));
    if (*finding)
        return tl::unexpected<TrialEnd>(findingVerdict(**finding, where));
    return {};
}

std::unique_ptr<CaseQueue> queueCases(const TrialContext &context, bool ahead)
{
    std::vector<CheckStep> steps = stepsOf(context);
    for (const std::uint64_t seed : context.unseenSeeds)
        steps.push_back({&context.job.workload.cases.front(), seed, true});
    return std::make_unique<CaseQueue>(std::move(steps), ahead, context.instance);
}

StageResult<void> checkCorrectness(const PreparedCandidate &prepared, ModuleId module,
                                   const TrialContext &context, CaseQueue &queue, CorrectnessResult &result)
{
    const auto steps = std::span(queue.steps()).first(queue.steps().size() - context.unseenSeeds.size());
    if (auto sealed = primeAndSeal(steps, prepared, module, context); !sealed)
        return sealed;
    for (std::size_t i = 0; i < steps.size(); ++i) {
        const CheckStep &step = steps[i];
        context.report(Stage::Correctness, static_cast<double>(i) / static_cast<double>(steps.size()),
                       "case " + step.theCase->name + ", " + std::to_string(i + 1) + " of "
                           + std::to_string(steps.size()));
        if (context.stop.stop_requested())
            return tl::unexpected<TrialEnd>(Error{ErrorCode::Cancelled, "The trial was cancelled.", {}});
        if (result.seeds.empty() || result.seeds.back() != step.seed) // several contents may be of one
            result.seeds.push_back(step.seed);
        if (step.own)
            result.drawn.push_back(step.own->name);
        const auto instance = takeNext(queue, context);
        if (!instance)
            return tl::unexpected<TrialEnd>(instance.error());
        if (step.last && step.own && overflows(**instance))
            continue;
        if (auto checked = checkStep(step, *instance, prepared, module, context, result); !checked)
            return checked;
        if (step.timed)
            result.timed.push_back(*instance);
        if (step.hard)
            result.hard.push_back(*instance);
    }
    while (result.unseen.size() < context.unseenSeeds.size()) {
        auto instance = takeNext(queue, context);
        if (!instance)
            return tl::unexpected<TrialEnd>(instance.error());
        result.unseen.push_back(std::move(*instance));
    }
    return {};
}

} // namespace klineage::gate
