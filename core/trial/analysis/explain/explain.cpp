// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/explain.h"

#include "core/base/listtext.h"
#include "core/trial/analysis/explain/explaintext.h"
#include "core/trial/analysis/explain/waits.h"
#include "core/trial/analysis/figures.h"
#include "core/trial/metricnames.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace klineage::gate {

namespace {

constexpr std::size_t mostCauses = 3;
constexpr std::size_t mostLines = 3;
constexpr std::size_t mostFigures = 3;
// Workbench default: two profiled launches of one kernel differ by about this much of the run in how they divide it.
constexpr double leastChange = 0.01;
constexpr double leastOfCause = 0.05;  ///< of a cause's change: a line below says nothing
constexpr double leastOfFigure = 0.02; ///< as Profile Δ has it: less is how such figures vary by themselves
constexpr double slowerProfiled = 0.1;

constexpr const char *lookedAt[] = {
    metric::instExecuted, metric::dramBytes, metric::tensorActive,         metric::sharedWavefronts,
    metric::warpsActive,  metric::smActive,  metric::theoreticalOccupancy, metric::registers,
    metric::waves,        "spill_stores"};

bool isRate(const std::string &metric)
{
    static const std::set<std::string> amounts = {metric::dramBytes,
                                                  metric::dramReadBytes,
                                                  metric::dramWriteBytes,
                                                  metric::instExecuted,
                                                  metric::sharedWavefronts,
                                                  metric::bankConflicts,
                                                  metric::ffma,
                                                  metric::fadd,
                                                  metric::fmul,
                                                  metric::tensorInstructions,
                                                  metric::tensorCycles,
                                                  metric::kernelTime,
                                                  metric::localLoads,
                                                  metric::localStores};
    return !amounts.contains(metric);
}

std::string unitOf(const Trial &trial, const std::string &name)
{
    const auto found = std::find_if(trial.metrics.begin(), trial.metrics.end(),
                                    [&](const Metric &metric) { return metric.name == name; });
    return found == trial.metrics.end() ? std::string() : found->unit;
}

std::optional<double> valueOf(const Trial &trial, const std::string &name)
{
    const Figures figures = figuresOf(trial);
    return isRate(name) ? figures.weighted(name) : figures.sum(name);
}

FigurePair figurePair(const Trial &before, const Trial &after, const std::string &name)
{
    const std::string unit = unitOf(after, name);
    return {name, unit.empty() ? unitOf(before, name) : unit, valueOf(before, name), valueOf(after, name)};
}

bool isInBoth(const FigurePair &pair)
{
    return pair.before && pair.after;
}

/// Before and after read the same.
bool readsEqual(const FigurePair &pair)
{
    return metricText(*pair.before, pair.unit) == metricText(*pair.after, pair.unit);
}

std::vector<FigurePair> changedFigures(const Trial &before, const Trial &after)
{
    std::vector<FigurePair> changed;
    for (const char *name : lookedAt) {
        FigurePair pair = figurePair(before, after, name);
        if (isInBoth(pair) && !readsEqual(pair)
            && std::abs(*pair.after - *pair.before) >= leastOfFigure * std::abs(*pair.before))
            changed.push_back(std::move(pair));
    }
    return changed;
}

/// The median of paired rounds; else of two trials, between the far ends of their intervals.
void takeTimes(Explanation &out, const Trial &before, const Trial &after, const Comparison *paired)
{
    out.afterNs = after.latencyNs.value;
    out.paired = paired && paired->otherNs > 0 && paired->speedup.low > 0;
    if (out.paired) {
        out.beforeNs = paired->otherNs;
        out.speedup = paired->speedup;
        return;
    }
    out.beforeNs = before.latencyNs.value;
    if (out.beforeNs > 0 && after.latencyNs.low > 0 && out.afterNs > 0)
        out.speedup = {out.beforeNs / out.afterNs, before.latencyNs.low / after.latencyNs.high,
                       before.latencyNs.high / after.latencyNs.low};
}

std::string keptBy(const NamedTrial &side)
{
    std::vector<std::string> kept;
    const Figures figures = figuresOf(side.trial);
    if (side.trial.latencyNs.value > 0)
        kept.emplace_back("its time");
    if (figures.has(metric::registers))
        kept.emplace_back("registers and shared memory");
    if (figures.has(metric::blocks) || figures.has("work_groups"))
        kept.emplace_back("the numbers of its launches");
    if (figures.has(metric::kernelTime))
        kept.emplace_back("hardware counters");
    if (!side.trial.hotspots.empty())
        kept.emplace_back("stall samples");
    const bool isNamed = side.name != "this trial";
    return (isNamed ? "The trial of " + side.name : std::string("This trial")) + " kept "
           + (kept.empty() ? "no figures" : listed(kept)) + ".";
}

/// Why the trials are not divided; empty when they can be.
std::string obstacle(const NamedTrial &before, const NamedTrial &after, const Explanation &out,
                     TimeSource source)
{
    for (const NamedTrial *side : {&before, &after}) {
        if (side->trial.latencyNs.value <= 0)
            return "The trial of " + side->name + " has no time.";
    }
    if (out.speedup.low <= 1 && out.speedup.high >= 1)
        return out.paired
                   ? "The paired rounds show no difference: there is nothing to explain."
                   : "The two times do not differ by more than they vary: there is nothing to explain.";
    if ((out.speedup.value > 1) != (out.afterNs < out.beforeNs))
        return "The paired rounds say one thing and the medians of all rounds another: there is nothing to explain.";
    if (source != TimeSource::None)
        return {};
    if (const kernel::DeviceTraits &device = after.trial.surface.device(); !device.counters)
        return std::string("There are no counters and no stall samples on ") + device.name
               + ", so nothing says where the time went.";
    std::vector<std::string> without;
    for (const NamedTrial *side : {&before, &after}) {
        if (finestSource(side->trial) == TimeSource::None)
            without.push_back(side->name);
    }
    return "Missing are hardware counters and stall samples of " + listed(without)
           + ", so nothing says where the time went. Gate " + (without.size() > 1 ? "both" : "it")
           + " again with counters: klineage-cli gate run --counters.";
}

std::string strongest(const std::map<std::string, double> &before, double beforeNs,
                      const std::map<std::string, double> &after, double afterNs, double direction)
{
    std::map<std::string, double> changes;
    for (const auto &[name, share] : before)
        changes[name] -= share * beforeNs;
    for (const auto &[name, share] : after)
        changes[name] += share * afterNs;
    const auto most = std::max_element(changes.begin(), changes.end(), [&](const auto &a, const auto &b) {
        return direction * a.second < direction * b.second;
    });
    return most == changes.end() ? std::string() : most->first;
}

/// Everything of a cause but its lines and figures.
Cause causeOf(const TimeGroup &group, const TimeParts &before, const TimeParts &after, const Explanation &out)
{
    const auto partOf = [&](const TimeParts &parts) {
        const auto found = parts.groups.find(group.id);
        return found == parts.groups.end() ? TimePart() : found->second;
    };
    const TimePart older = partOf(before);
    const TimePart newer = partOf(after);
    Cause cause;
    cause.group = group.id;
    cause.title = group.title;
    cause.before = older.share;
    cause.after = newer.share;
    cause.beforeNs = older.share * out.beforeNs;
    cause.afterNs = newer.share * out.afterNs;
    cause.shareOfDifference = cause.deltaNs() / out.differenceNs();
    const double direction = cause.deltaNs() < 0 ? -1 : 1;
    cause.reason = strongest(older.reasons, out.beforeNs, newer.reasons, out.afterNs, direction);
    cause.kernel = strongest(older.kernels, out.beforeNs, newer.kernels, out.afterNs, direction);
    return cause;
}

void addFigures(Cause &cause, const TimeGroup &group, const Trial &before, const Trial &after)
{
    std::vector<std::string> names(group.metrics.begin(), group.metrics.end());
    if (!cause.reason.empty())
        names.insert(names.begin(), metricOfReason(cause.reason));
    for (const std::string &name : names) {
        FigurePair pair = figurePair(before, after, name);
        const bool saysNothing = !isInBoth(pair) || readsEqual(pair);
        if (saysNothing || cause.figures.size() == mostFigures)
            continue;
        if (cause.metric.empty())
            cause.metric = name;
        cause.figures.push_back(std::move(pair));
    }
}

void addLines(Cause &cause, const SampledRun &before, const SampledRun &after, const SameLines &same)
{
    for (MovedLine &line : movedLines(before, after, cause.group, same)) {
        const bool isOfCause = line.deltaNs * cause.deltaNs() > 0
                               && std::abs(line.deltaNs) >= leastOfCause * std::abs(cause.deltaNs());
        if (isOfCause && cause.lines.size() < mostLines)
            cause.lines.push_back(std::move(line));
    }
}

std::vector<std::string> cautionsOf(const NamedTrial &before, const NamedTrial &after, const Explanation &out)
{
    std::vector<std::string> cautions;
    if (!out.paired)
        cautions.emplace_back(
            "The two were not timed side by side: the difference is that of two medians, perhaps at different clocks.");
    if (before.trial.environment.device != after.trial.environment.device)
        cautions.push_back(before.name + " ran on " + before.trial.environment.device + ", " + after.name
                           + " on " + after.trial.environment.device + ".");
    if (out.causes.empty())
        return cautions;
    cautions.emplace_back(
        "Shares are estimates: each side was profiled in a launch of its own, and a warp that waits delays the run only "
        "where no other could work.");
    const auto kernels = [](const NamedTrial &side) { return figuresOf(side.trial).kernels.size(); };
    if (std::max(kernels(before), kernels(after)) > 1)
        cautions.emplace_back("Figures are of all kernels: amounts added up, rates weighted by time.");
    for (const NamedTrial *side : {&before, &after}) {
        const double profiled = figuresOf(side->trial).sum(metric::kernelTime).value_or(0);
        if (profiled > (1 + slowerProfiled) * side->trial.latencyNs.value)
            cautions.push_back("Under the profiler " + side->name + " was more than 10 % slower than timed.");
    }
    return cautions;
}

} // namespace

Explanation explainStep(const NamedTrial &before, const NamedTrial &after, const Comparison *paired,
                        const SameLines &same)
{
    Explanation out;
    out.beforeName = before.name;
    out.afterName = after.name;
    takeTimes(out, before.trial, after.trial, paired);
    out.figures = changedFigures(before.trial, after.trial);
    const TimeSource source = std::min(finestSource(before.trial), finestSource(after.trial));
    out.nothing = obstacle(before, after, out, source);
    if (!out.nothing.empty()) {
        out.kept = {keptBy(before), keptBy(after)};
        out.cautions = cautionsOf(before, after, out);
        return out;
    }
    out.source = source;
    const TimeParts older = timeParts(before.trial, source);
    const TimeParts newer = timeParts(after.trial, source);
    const double least = leastChange * std::max(out.beforeNs, out.afterNs);
    for (const TimeGroup &group : timeGroups()) {
        Cause cause = causeOf(group, older, newer, out);
        if (std::abs(cause.deltaNs()) < least)
            continue;
        addFigures(cause, group, before.trial, after.trial);
        (cause.shareOfDifference > 0 ? out.causes : out.against).push_back(std::move(cause));
    }
    const auto larger = [](const Cause &a, const Cause &b) {
        return std::abs(a.shareOfDifference) > std::abs(b.shareOfDifference);
    };
    std::sort(out.causes.begin(), out.causes.end(), larger);
    std::sort(out.against.begin(), out.against.end(), larger);
    if (out.causes.size() > mostCauses)
        out.causes.resize(mostCauses);
    for (Cause &cause : out.causes) {
        out.together += cause.shareOfDifference;
        if (source == TimeSource::Samples)
            addLines(cause, {before.trial, older, out.beforeNs}, {after.trial, newer, out.afterNs}, same);
    }
    if (out.causes.empty()) {
        out.nothing =
            "No part of the time changed by 1 % of the run or more: what changed is below what two profiles of one kernel "
            "differ by.";
        out.kept = {keptBy(before), keptBy(after)};
    }
    out.cautions = cautionsOf(before, after, out);
    return out;
}

} // namespace klineage::gate
