// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/rooflinepath.h"

#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/trial/analysis/figures.h"
#include "core/trial/analysis/figuretext.h"
#include "core/trial/analysis/roof.h"
#include "core/trial/metricnames.h"

#include <algorithm>

namespace klineage::gate {

namespace {

bool isTimed(const Trial *trial)
{
    return trial && trial->verdict.status == VerdictStatus::Correct && trial->latencyNs.value > 0
           && trial->achievedFlops > 0;
}

bool hasRoof(const ChainedTrial &state)
{
    return state.trial && recordedRoof(state.trial->environment).has_value();
}

const ChainedTrial *ceilingState(const std::vector<ChainedTrial> &chain, std::string_view selected)
{
    const auto chosen = std::find_if(chain.begin(), chain.end(), [&](const ChainedTrial &state) {
        return state.id == selected && hasRoof(state);
    });
    if (chosen != chain.end())
        return &*chosen;
    const auto last = std::find_if(chain.rbegin(), chain.rend(), hasRoof);
    return last == chain.rend() ? nullptr : &*last;
}

std::string factOf(const Environment &environment, const char *name)
{
    const auto found = environment.facts.find(name);
    return found == environment.facts.end() ? std::string() : found->second;
}

void takeCeilings(RooflinePath &path, const ChainedTrial &state)
{
    const Environment &environment = state.trial->environment;
    const Roof roof = *recordedRoof(environment);
    path.ceilingsOf = state.id;
    path.device = environment.device;
    const std::string day = factOf(environment, "roofline_measured").substr(0, 10);
    const std::string measured = day.empty() ? "measured" : "measured on " + day;
    if (roof.bandwidth > 0) {
        const double footprint = numberIn(factOf(environment, "roofline_footprint"));
        path.ceilings.push_back(
            {"copy", roof.bandwidth, true,
             measured + (footprint > 0 ? " over " + formatScaled(footprint, "B") : std::string())});
    }
    if (roof.peak > 0)
        path.ceilings.push_back({roof.peakName, roof.peak, false, measured});
    if (roof.fp32 > 0 && roof.peakName != "fp32")
        path.ceilings.push_back({"fp32", roof.fp32, false, measured});
    std::sort(path.ceilings.begin(), path.ceilings.end(), [](const auto &a, const auto &b) {
        return a.isBandwidth != b.isBandwidth ? a.isBandwidth : a.perSecond > b.perSecond;
    });
}

double countedBytes(const Trial &trial)
{
    return figuresOf(trial).sum(metric::dramBytes).value_or(0);
}

double leastBytes(const Trial &trial)
{
    return trial.achievedBytes * trial.latencyNs.value * 1e-9;
}

void sayLeftOut(RooflinePath &path, const std::vector<std::string> &ids, const char *why)
{
    if (!ids.empty())
        path.notices.push_back("Left out: " + listed(ids) + " (" + why + ").");
}

std::string noPoints(const std::vector<ChainedTrial> &chain)
{
    const bool timed = std::any_of(chain.begin(), chain.end(), [](const ChainedTrial &state) {
        return state.trial && state.trial->latencyNs.value > 0;
    });
    return timed ? "The workload counts no floating-point operations, so its states have no place under the "
                   "device's rates."
                 : "No state of this lineage was timed.";
}

} // namespace

const char *toString(RooflineBytes bytes)
{
    return bytes == RooflineBytes::Counted ? "counted" : "least";
}

RooflinePath rooflinePath(const std::vector<ChainedTrial> &chain, std::string_view selected)
{
    RooflinePath path;
    const ChainedTrial *source = ceilingState(chain, selected);
    if (!source) {
        path.missing =
            "No trial of this lineage has recorded what its device can do at most. Gate a state again: "
            "the device is measured then.";
        return path;
    }
    takeCeilings(path, *source);
    std::vector<const ChainedTrial *> shown;
    std::vector<std::string> untimed;
    std::vector<std::string> elsewhere;
    for (const ChainedTrial &state : chain) {
        if (!isTimed(state.trial))
            untimed.push_back(state.id);
        else if (state.trial->environment.device != path.device)
            elsewhere.push_back(state.id);
        else
            shown.push_back(&state);
    }
    if (shown.empty()) {
        path.missing = noPoints(chain);
        return path;
    }
    sayLeftOut(path, untimed, "not timed");
    sayLeftOut(path, elsewhere, "measured on another device");
    std::vector<std::string> uncounted;
    for (const ChainedTrial *state : shown) {
        if (countedBytes(*state->trial) <= 0)
            uncounted.push_back(state->id);
    }
    path.bytes = uncounted.empty() ? RooflineBytes::Counted : RooflineBytes::Least;
    if (!uncounted.empty() && uncounted.size() < shown.size())
        path.notices.push_back("Not all trials have counted bytes (" + listed(uncounted)
                               + " have none), so all stand at the fewest that the workload needs.");
    for (const ChainedTrial *state : shown) {
        const Trial &trial = *state->trial;
        const double bytes = path.bytes == RooflineBytes::Counted ? countedBytes(trial) : leastBytes(trial);
        if (bytes > 0)
            path.points.push_back({state->id, trial.achievedFlops * trial.latencyNs.value * 1e-9 / bytes,
                                   trial.achievedFlops, trial.latencyNs.value});
    }
    if (path.points.empty())
        path.missing = "The workload does not say how many bytes it needs, so its states have no intensity.";
    return path;
}

std::string bothIntensities(const Trial &trial)
{
    const double operations = trial.achievedFlops * trial.latencyNs.value * 1e-9;
    const double counted = countedBytes(trial);
    const double least = leastBytes(trial);
    if (!(operations > 0) || counted <= 0 || least <= 0)
        return {};
    return "By the fewest bytes that the workload needs it has " + formatFigure(operations / least)
           + " FLOP/B, by the bytes that were counted in device memory " + formatFigure(operations / counted)
           + " FLOP/B.";
}

RoofAbove roofAbove(const RooflinePath &path, double intensity)
{
    const RooflineCeiling *bandwidth = nullptr;
    const RooflineCeiling *peak = nullptr;
    for (const RooflineCeiling &ceiling : path.ceilings) {
        const RooflineCeiling *&best = ceiling.isBandwidth ? bandwidth : peak;
        if (!best || ceiling.perSecond > best->perSecond)
            best = &ceiling;
    }
    if (bandwidth && (!peak || bandwidth->perSecond * intensity < peak->perSecond))
        return {bandwidth, bandwidth->perSecond * intensity};
    return {peak, peak ? peak->perSecond : 0};
}

} // namespace klineage::gate
