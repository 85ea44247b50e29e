// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/classify.h"

#include "core/trial/analysis/figuretext.h"
#include "core/trial/metricnames.h"

#include <algorithm>

namespace klineage::gate {

namespace {

// Workbench defaults: intensities within this factor of the ridge are on both slopes of the roof at once.
constexpr double ridgeWidth = 1.5;
// Workbench default: when neither share is that large, neither memory nor arithmetic is what is waited for.
constexpr double idleShare = 0.2;
// Nsight Compute's rule for "busy": above 60 % of a unit's peak.
constexpr double busyPercent = 60;

BoundBy analyticBound(const Analysis &analysis, double bandwidth, double peak)
{
    if (analysis.intensity <= 0 || bandwidth <= 0)
        return BoundBy::Unknown;
    if (peak <= 0)
        return BoundBy::Unknown;
    if (std::max(analysis.bandwidthShare, analysis.peakShare) < idleShare)
        return BoundBy::Latency;
    if (analysis.intensity > analysis.ridge * ridgeWidth)
        return BoundBy::Compute;
    return analysis.intensity < analysis.ridge / ridgeWidth ? BoundBy::Memory : BoundBy::Mixed;
}

std::string analyticReason(const Analysis &analysis, const Roof &roof)
{
    return formatFigure(analysis.intensity) + " FLOP/B against a measured ridge of "
           + formatFigure(analysis.ridge) + "; it reaches " + formatShare(analysis.bandwidthShare)
           + " of the measured bandwidth and " + formatShare(analysis.peakShare) + " of the measured "
           + roof.peakName + " rate.";
}

struct Busy {
    std::optional<double> memory;
    std::optional<double> compute;
    std::string computeName;
};

Busy busyOf(const Figures &figures)
{
    Busy busy;
    busy.memory = figures.weighted(metric::dramThroughput);
    for (const auto &[name, words] : {std::pair{metric::tensorActive, "tensor pipe"},
                                      std::pair{metric::issueActive, "instruction issue"}}) {
        if (const auto value = figures.weighted(name); value && *value > busy.compute.value_or(-1)) {
            busy.compute = value;
            busy.computeName = words;
        }
    }
    return busy;
}

BoundBy countedBound(const Busy &busy)
{
    if (!busy.memory || !busy.compute)
        return BoundBy::Unknown;
    const bool memory = *busy.memory >= busyPercent;
    const bool compute = *busy.compute >= busyPercent;
    if (memory && compute)
        return BoundBy::Mixed;
    return memory ? BoundBy::Memory : compute ? BoundBy::Compute : BoundBy::Latency;
}

std::string countedReason(const Busy &busy)
{
    return "device memory at " + formatShare(*busy.memory / 100) + " and the " + busy.computeName + " at "
           + formatShare(*busy.compute / 100) + " of their peaks (busy: from 60 %)";
}

} // namespace

const char *toString(BoundBy bound)
{
    switch (bound) {
    case BoundBy::Unknown:
        return "unknown";
    case BoundBy::Compute:
        return "compute";
    case BoundBy::Memory:
        return "memory";
    case BoundBy::Latency:
        return "latency";
    case BoundBy::Mixed:
        return "mixed";
    }
    return "unknown";
}

void classify(const Trial &trial, const std::optional<Roof> &roof, const Figures &figures, Analysis &analysis)
{
    Classification &out = analysis.classification;
    if (trial.achievedBytes > 0)
        analysis.intensity = trial.achievedFlops / trial.achievedBytes;
    if (roof) {
        analysis.ridge = roof->ridge();
        analysis.bandwidthShare = roof->bandwidth > 0 ? trial.achievedBytes / roof->bandwidth : 0;
        analysis.peakShare = roof->peak > 0 ? trial.achievedFlops / roof->peak : 0;
        out.analytic = analyticBound(analysis, roof->bandwidth, roof->peak);
    }
    const Busy busy = busyOf(figures);
    out.counters = countedBound(busy);
    out.bound = out.analytic != BoundBy::Unknown ? out.analytic : out.counters;
    if (out.analytic == BoundBy::Unknown)
        out.reason =
            trial.latencyNs.value <= 0 ? "Not measured: the trial was not timed."
            : !roof
                ? "Not measured: the device's ceilings were not recorded with this trial."
                : "Not measured: the workload's operations, its bytes or a ceiling for them are not known.";
    else
        out.reason = analyticReason(analysis, *roof);
    if (out.counters == BoundBy::Unknown)
        return;
    if (out.analytic == BoundBy::Unknown)
        out.reason = "By counters alone: " + countedReason(busy) + ". " + out.reason;
    else if (out.analytic == out.counters)
        out.reason += " Counters agree: " + countedReason(busy) + ".";
    else
        out.reason += std::string(" Counters say ") + toString(out.counters) + ": " + countedReason(busy)
                      + "; the analytic side is trusted.";
}

} // namespace klineage::gate
