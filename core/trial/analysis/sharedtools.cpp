// SPDX-License-Identifier: GPL-3.0-or-later
// Thresholds without a source are workbench defaults.
#include "core/trial/analysis/figuretext.h"
#include "core/trial/analysis/tools.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

using Sentence = std::optional<std::string>;

constexpr double lowShare = 0.6;
constexpr double highShare = 0.85;
constexpr double launchShare = 0.2; // KernelPro: launch overhead > 20 %
constexpr double fullLocalMemory = 0;
constexpr double plainPrivateBytes = 1024; // what PoCL says of a kernel that keeps everything in registers

Sentence ceiling(const ToolScope &scope)
{
    const Analysis &analysis = scope.analysis;
    const bool memory = analysis.bandwidthShare >= analysis.peakShare;
    const double share = memory ? analysis.bandwidthShare : analysis.peakShare;
    if (share <= 0)
        return {};
    const std::string what =
        memory
            ? "the measured copy bandwidth, " + formatScaled(scope.roof->bandwidth, "B/s")
            : "the measured " + scope.roof->peakName + " rate, " + formatScaled(scope.roof->peak, "FLOP/s");
    if (share >= highShare)
        return "It reaches " + formatShare(share) + " of " + what
               + " (threshold 85 %): little is left here, so only needing fewer "
               + (memory ? "bytes" : "operations") + " can help.";
    if (share < lowShare)
        return "It reaches " + formatShare(share) + " of " + what
               + " (threshold 60 %), the nearer of its two limits: something else than the limit is waited for.";
    return {};
}

Sentence launches(const ToolScope &scope)
{
    const int count = scope.figures.launches;
    if (scope.roof->launchNs <= 0 || scope.trial.latencyNs.value <= 0 || count < 1)
        return {};
    const double share = count * scope.roof->launchNs / scope.trial.latencyNs.value;
    if (share <= launchShare)
        return {};
    return "Launching takes about " + formatShare(std::min(share, 1.0)) + " of the run, "
           + std::to_string(count) + (count == 1 ? " launch" : " launches") + " of "
           + formatFigure(scope.roof->launchNs / 1e3)
           + " µs as measured with an empty kernel (threshold 20 %): "
           + (count > 1 ? "fusing launches usually pays."
                        : "more work for each launch, or fewer work-groups, would hide it.");
}

Sentence groupSize(const ToolScope &scope)
{
    const double size = scope.get("work_group_size");
    const double multiple = scope.get("preferred_multiple");
    if (multiple <= 1)
        return {};
    const double rest = std::fmod(size, multiple);
    if (rest == 0)
        return {};
    if (size < multiple)
        return "A work-group has " + formatFigure(size) + (size == 1 ? " work-item" : " work-items")
               + ", the compiler's vectors hold " + formatFigure(multiple)
               + " (threshold: a multiple): unless the code uses vector types itself, lanes stay empty.";
    return "A work-group has " + formatFigure(size) + " work-items, no multiple of the preferred "
           + formatFigure(multiple) + ": the last vector of each group is filled to " + formatFigure(rest)
           + " lanes only.";
}

Sentence localMemory(const ToolScope &scope)
{
    const double bytes = scope.get("local_mem");
    if (bytes <= fullLocalMemory || scope.trial.environment.platform != "pocl")
        return {};
    return "It uses " + formatScaled(bytes, "B")
           + " of local memory on a CPU (threshold 0): there it is ordinary cached memory, so "
           + "staging costs a copy and barriers, and pays only when it repacks data for contiguous vectors.";
}

Sentence privateMemory(const ToolScope &scope)
{
    const double bytes = scope.get("private_mem");
    if (bytes <= plainPrivateBytes)
        return {};
    return "A work-item keeps " + formatScaled(bytes, "B")
           + " of private memory (threshold 1.024 kB): arrays that do not fit registers are spilled to memory; smaller tiles or "
             "constant indices usually keep them in registers.";
}

/// Work-groups are handed to cores as they become free, so only the last ones leave cores idle.
Sentence groups(const ToolScope &scope)
{
    const double count = scope.get("work_groups");
    const double units = scope.fact(scope.trial.surface.device().unitsFact);
    if (units <= 1 || count <= 0)
        return {};
    if (count < units)
        return "There are " + formatFigure(count) + (count == 1 ? " work-group" : " work-groups") + " for "
               + formatFigure(units) + " compute units: the others stay idle.";
    const double used = count / units / std::ceil(count / units);
    if (used >= tailShare)
        return {};
    return formatFigure(count) + " work-groups over " + formatFigure(units) + " compute units use "
           + formatShare(used) + " of them on average (threshold 85 %): in the last round some stay idle.";
}

} // namespace

std::vector<Tool> sharedTools()
{
    using kernel::DeviceKind;
    constexpr auto Any = std::nullopt;
    using enum Tool::Looks;
    return {
        {"ceiling", Any, WholeRun, {}, true, ceiling},
        {"launch-overhead", Any, WholeRun, {}, true, launches},
        {"work-group-size",
         DeviceKind::OpenCl,
         EachKernel,
         {"work_group_size", "preferred_multiple"},
         false,
         groupSize},
        {"work-groups", DeviceKind::OpenCl, EachKernel, {"work_groups"}, false, groups},
        {"local-memory", DeviceKind::OpenCl, EachKernel, {"local_mem"}, false, localMemory},
        {"private-memory", DeviceKind::OpenCl, EachKernel, {"private_mem"}, false, privateMemory},
    };
}

} // namespace klineage::gate
