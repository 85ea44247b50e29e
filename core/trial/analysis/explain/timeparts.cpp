// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/timeparts.h"

#include "core/trial/analysis/explain/waits.h"
#include "core/trial/analysis/figures.h"
#include "core/trial/metricnames.h"

#include <algorithm>

namespace klineage::gate {

namespace {

// The shares that counters give, each by the name that samples have for it.
constexpr const char *counted[] = {
    "long_scoreboard", "short_scoreboard", "barrier", "membar",       "math_pipe_throttle",
    "mio_throttle",    "lg_throttle",      "wait",    "not_selected", "selected",
    "no_instructions", "sleeping",         "gmma"};

using Reasons = std::map<std::string, double>;

/// Samples by kernel and reason. A line's samples that have no reason count as such.
std::map<std::string, Reasons> samplesOf(const Trial &trial)
{
    std::map<std::string, Reasons> samples;
    for (const Hotspot &spot : trial.hotspots) {
        double named = 0;
        for (const auto &[reason, count] : spot.stalls) {
            samples[spot.kernel][reason] += static_cast<double>(count);
            named += static_cast<double>(count);
        }
        if (const double rest = static_cast<double>(spot.samples) - named; rest > 0)
            samples[spot.kernel]["not_said"] += rest;
    }
    return samples;
}

double total(const Reasons &reasons)
{
    double sum = 0;
    for (const auto &[reason, count] : reasons)
        sum += count;
    return sum;
}

bool hasStalls(const KernelFigures &kernel)
{
    return kernel.find(metric::stallLongScoreboard) && kernel.find(metric::stallSelected);
}

/// Shares of the warps' time by the counters; the reasons that these leave out are the rest.
Reasons countedReasons(const KernelFigures &kernel)
{
    Reasons reasons;
    for (const char *reason : counted) {
        if (const auto value = kernel.find(metricOfReason(reason)); value && *value > 0)
            reasons[reason] = *value;
    }
    if (const double rest = 100 - total(reasons); rest > 0)
        reasons["not_counted"] = rest;
    return reasons;
}

std::vector<KernelFigures> profiledKernels(const Figures &figures)
{
    std::vector<KernelFigures> kernels;
    for (const KernelFigures &kernel : figures.kernels) {
        if (kernel.find(metric::kernelTime).value_or(0) > 0)
            kernels.push_back(kernel);
    }
    return kernels;
}

void add(TimeParts &parts, const std::string &group, const std::string &kernel, double share)
{
    if (share <= 0)
        return;
    TimePart &part = parts.groups[group];
    part.share += share;
    if (!kernel.empty())
        part.kernels[kernel] += share;
}

} // namespace

const char *toString(TimeSource source)
{
    switch (source) {
    case TimeSource::None:
        return "none";
    case TimeSource::Activity:
        return "activity";
    case TimeSource::StallCounters:
        return "stall_counters";
    case TimeSource::Samples:
        return "samples";
    }
    return "none";
}

TimeSource finestSource(const Trial &trial)
{
    const Figures figures = figuresOf(trial);
    const std::vector<KernelFigures> kernels = profiledKernels(figures);
    // A kernel without a time would be taken for time between kernels.
    if (kernels.empty() || kernels.size() != figures.kernels.size() || trial.latencyNs.value <= 0)
        return TimeSource::None;
    const auto samples = samplesOf(trial);
    const auto all = [&](const auto &holds) { return std::all_of(kernels.begin(), kernels.end(), holds); };
    if (all([&](const KernelFigures &kernel) { return samples.contains(kernel.kernel); }))
        return TimeSource::Samples;
    if (all(hasStalls))
        return TimeSource::StallCounters;
    if (all([](const KernelFigures &kernel) { return kernel.find(metric::smActive).has_value(); }))
        return TimeSource::Activity;
    return TimeSource::None;
}

TimeParts timeParts(const Trial &trial, TimeSource source)
{
    TimeParts parts;
    if (source == TimeSource::None)
        return parts;
    const Figures figures = figuresOf(trial);
    const auto samples = samplesOf(trial);
    const double inKernels = figures.sum(metric::kernelTime).value_or(0);
    // The profiled launches may be slower than the timed ones; then there is nothing between them.
    const double run = std::max(trial.latencyNs.value, inKernels);
    add(parts, outsideGroup, {}, 1 - inKernels / run);
    for (const KernelFigures &kernel : profiledKernels(figures)) {
        const double share = *kernel.find(metric::kernelTime) / run;
        const double active = std::clamp(kernel.find(metric::smActive).value_or(100) / 100, 0.0, 1.0);
        add(parts, idleGroup, kernel.kernel, share * (1 - active));
        if (source == TimeSource::Activity) {
            add(parts, busyGroup, kernel.kernel, share * active);
            continue;
        }
        const bool sampled = source == TimeSource::Samples;
        const Reasons reasons = sampled ? samples.at(kernel.kernel) : countedReasons(kernel);
        const double perUnit = share * active / total(reasons);
        if (sampled)
            parts.perSample[kernel.kernel] = perUnit;
        for (const auto &[reason, count] : reasons) {
            const std::string group = groupOfReason(reason);
            add(parts, group, kernel.kernel, count * perUnit);
            parts.groups[group].reasons[reason] += count * perUnit;
        }
    }
    return parts;
}

} // namespace klineage::gate
