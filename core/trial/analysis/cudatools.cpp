// SPDX-License-Identifier: GPL-3.0-or-later
// Thresholds marked KernelPro are the triggers of its second stage; those without a source are workbench defaults.
#include "core/trial/analysis/figuretext.h"
#include "core/trial/analysis/launch/smlimits.h"
#include "core/trial/analysis/tools.h"
#include "core/trial/metricnames.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

using Sentence = std::optional<std::string>;

constexpr double occupancyPercent = 50; // KernelPro: occupancy < 50 %
constexpr double registersMost = 96;    // KernelPro: registers > 96
constexpr double stallPercent = 40;     // KernelPro: warp stall > 40 %
constexpr double stallCritical = 60;    // KernelPro: critical 60 %
constexpr double barrierPercent = 30;   // KernelPro: barrier stall > 30 %
constexpr double sectorsIdeal = 4;      // 32 lanes × 4 bytes / 32-byte sectors
constexpr double sectorsExcess = 1.2;   // KernelPro: sectors per request > 1.2 × ideal
constexpr double dramPercent = 80;      // KernelPro: DRAM throughput > 80 %
constexpr double l1Percent = 30;        // KernelPro: L1 hit < 30 % (coalescing)
constexpr double spillStall = 15;       // KernelPro: local loads and stores > 0 with long scoreboard > 15 %
constexpr double conflictShare = 0.1;
constexpr double tensorPercent = 50;
constexpr double idlePercent = 0.05; // what a counter says of a pipe that nothing uses
constexpr double issuePercent = 70;
constexpr double l2Percent = 50;
constexpr double rereads = 1.5;
constexpr double registersOfSm = 65536; // since compute capability 5.0

std::string percent(double value)
{
    return formatShare(value / 100);
}

/// Vector loads need 8 sectors (8-byte elements) or 16 (16-byte elements) of a full warp.
bool isIdealVector(double sectors)
{
    return std::abs(sectors - 8) < 0.4 || std::abs(sectors - 16) < 0.8;
}

Sentence sectors(double value, const char *what)
{
    if (value <= sectorsIdeal * sectorsExcess || isIdealVector(value))
        return {};
    return std::string("A warp's global ") + what + " touches " + formatFigure(value)
           + " sectors of 32 bytes (threshold 4.8 for 4-byte elements side by side): neighbouring threads usually use addresses "
             "that lie apart or are not aligned, and part of each sector is moved for nothing.";
}

Sentence loadCoalescing(const ToolScope &scope)
{
    Sentence sentence = sectors(scope.get(metric::sectorsPerLoad), "load");
    if (const auto l1 = scope.find(metric::l1HitRate); sentence && l1 && *l1 < l1Percent)
        *sentence += " L1 does not catch it: " + percent(*l1) + " of its sectors hit (threshold 30 %).";
    return sentence;
}

Sentence storeCoalescing(const ToolScope &scope)
{
    return sectors(scope.get(metric::sectorsPerStore), "store");
}

/// What keeps more blocks away, when the figures show it.
std::string occupancyLimit(const ToolScope &scope)
{
    const auto resident = scope.find(metric::blocksPerSm);
    const auto threads = scope.find(metric::threadsPerBlock);
    if (!resident || !threads)
        return "registers, shared memory or the size of blocks limit it";
    constexpr double blockReserve = 1024; // shared memory that the system takes for each block
    const double shared = scope.get(metric::staticShared) + scope.get(metric::dynamicShared) + blockReserve;
    if (const SmLimits *limits = smLimits(scope.trial.environment.platform);
        limits && std::floor(limits->sharedBytes / shared) <= *resident)
        return formatScaled(shared - blockReserve, "B") + " of shared memory a block allow no more than "
               + formatFigure(*resident) + (*resident == 1 ? " block" : " blocks") + " on a multiprocessor";
    if (const auto registers = scope.find(metric::registers);
        registers && std::floor(registersOfSm / (std::ceil(*registers / 8) * 8 * *threads)) <= *resident)
        return formatFigure(*registers) + " registers a thread allow no more than " + formatFigure(*resident)
               + (*resident == 1 ? " block" : " blocks") + " of " + formatFigure(*threads) + " threads";
    return "blocks of " + formatFigure(*threads) + " threads leave warp slots unused";
}

Sentence occupancy(const ToolScope &scope)
{
    const double possible = scope.get(metric::theoreticalOccupancy);
    const auto achieved = scope.find(metric::warpsActive);
    const double value = achieved ? *achieved : possible;
    if (value >= occupancyPercent)
        return {};
    const std::string fine =
        " Fine when few warps keep the tensor cores or the memory busy; otherwise latency is not hidden.";
    if (achieved && possible >= occupancyPercent)
        return percent(value) + " of the warp slots are filled (threshold 50 %) though " + percent(possible)
               + " could be: blocks end at different times, or there are too few of them." + fine;
    return (achieved ? percent(value) + " of the warp slots are filled"
                     : "At most " + percent(value) + " of the warp slots can be filled")
           + " (threshold 50 %): " + occupancyLimit(scope) + "." + fine;
}

Sentence registerUse(const ToolScope &scope)
{
    const double value = scope.get(metric::registers);
    if (value <= registersMost)
        return {};
    return formatFigure(value)
           + " registers a thread (threshold 96): usually large tiles a thread or deep unrolling; it costs "
           + "occupancy, and more than 255 would spill.";
}

Sentence spills(const ToolScope &scope)
{
    const double bytes = scope.get("spill_stores") + scope.get("spill_loads");
    if (bytes <= 0)
        return {};
    std::string text =
        "The compiler spills registers to local memory, " + formatScaled(bytes, "B")
        + " of stores and loads a thread (threshold 0): a smaller tile, less unrolling or a looser launch bound "
          "usually ends it.";
    if (const auto stall = scope.find(metric::stallLongScoreboard); stall && *stall > spillStall)
        text += " Warps wait for memory " + percent(*stall) + " of the time (threshold 15 %), so it is felt.";
    return text;
}

Sentence localAccess(const ToolScope &scope)
{
    const double count = scope.get(metric::localLoads) + scope.get(metric::localStores);
    const double stall = scope.get(metric::stallLongScoreboard);
    if (count <= 0 || stall <= spillStall)
        return {};
    return formatFigure(count / 1e6)
           + " million warp instructions read or write local memory and warps wait for memory "
           + percent(stall)
           + " of the time (threshold 15 %): spilled registers, or arrays that are indexed with variables.";
}

struct Stall {
    const char *name;
    const char *meaning;
};

constexpr Stall stalls[] = {
    {metric::stallLongScoreboard,
     "global or local memory: more loads in flight, fewer bytes, or staging ahead of use"},
    {metric::stallShortScoreboard, "shared memory or special functions: fewer or wider shared accesses"},
    {metric::stallMembar, "memory fences: weaker or fewer of them"},
    {metric::stallMathPipe, "an arithmetic pipe that is full: the pipe is the limit"},
    {metric::stallMioThrottle, "the queue of shared memory and special functions: wider shared accesses"},
    {metric::stallLgThrottle, "the queue of global and local memory: wider and fewer accesses"},
    {metric::stallWait, "the fixed latency of the instruction before: more independent instructions"},
    {metric::stallNoInstruction, "instructions to arrive: smaller loops, less unrolling"},
    {metric::stallSleeping, "a sleep or a barrier object: a pipeline whose producers are late"},
    {metric::stallGmma, "asynchronous tensor products: usually as it should be"},
};

/// nullptr: none is above the threshold.
const Stall *worstStall(const ToolScope &scope)
{
    const Stall *worst = nullptr;
    double most = stallPercent;
    for (const Stall &stall : stalls) {
        if (const double value = scope.get(stall.name); value > most) {
            most = value;
            worst = &stall;
        }
    }
    return worst;
}

std::string worstStallName(const ToolScope &scope)
{
    const Stall *worst = worstStall(scope);
    return worst ? worst->name : std::string();
}

Sentence stallReasons(const ToolScope &scope)
{
    const Stall *worst = worstStall(scope);
    if (!worst)
        return {};
    const double most = scope.get(worst->name);
    return "Warps spend " + percent(most) + " of their time waiting for " + std::string(worst->meaning)
           + (most > stallCritical ? " (threshold 40 %, critical from 60 %)." : " (threshold 40 %).");
}

Sentence barriers(const ToolScope &scope)
{
    const double value = scope.get(metric::stallBarrier);
    if (value <= barrierPercent)
        return {};
    return "Warps spend " + percent(value)
           + " of their time at block barriers (threshold 30 %): uneven work between barriers, or blocks so large that all wait for "
             "the slowest warp.";
}

Sentence bankConflicts(const ToolScope &scope)
{
    const double all = scope.get(metric::sharedWavefronts);
    const double share = all > 0 ? scope.get(metric::bankConflicts) / all : 0;
    if (share <= conflictShare)
        return {};
    return formatShare(share)
           + " of the shared-memory cycles are bank conflicts (threshold 10 %): threads of a warp use one bank at "
           + "once; padding or swizzling rows usually ends it.";
}

/// A workload whose bytes are used often, and a kernel that shares nothing between threads.
Sentence tiling(const ToolScope &scope)
{
    const double shared = scope.get(metric::staticShared) + scope.get(metric::dynamicShared);
    if (shared > 0 || scope.analysis.ridge <= 0 || scope.analysis.intensity <= scope.analysis.ridge)
        return {};
    return "It uses no shared memory though the workload has " + formatFigure(scope.analysis.intensity)
           + " operations for each byte (threshold: the ridge, " + formatFigure(scope.analysis.ridge)
           + "): operands are probably loaded by every thread that needs them.";
}

Sentence tensorCores(const ToolScope &scope)
{
    const double active = scope.get(metric::tensorActive);
    const bool useful = scope.roof && scope.roof->peak > 2 * scope.roof->fp32
                        && scope.analysis.intensity > scope.analysis.ridge;
    if (!useful || active >= tensorPercent)
        return {};
    if (active < idlePercent)
        return "The tensor pipe is idle (threshold 50 % busy) though it would do " + scope.roof->peakName
               + " at " + formatFigure(scope.roof->peak / std::max(scope.roof->fp32, 1.0))
               + " times the rate of plain multiply-adds: the products are computed without tensor cores.";
    return "The tensor pipe is busy " + percent(active)
           + " of the time (threshold 50 %): operands usually arrive too late, or one warp's products wait for each other.";
}

Sentence issue(const ToolScope &scope)
{
    const double active = scope.get(metric::issueActive);
    if (active <= issuePercent)
        return {};
    return "Schedulers issue in " + percent(active)
           + " of their cycles (threshold 70 %): the number of instructions is the limit; wider loads, fewer index computations and "
             "unrolling reduce it.";
}

Sentence dram(const ToolScope &scope)
{
    const double value = scope.get(metric::dramThroughput);
    if (value <= dramPercent)
        return {};
    return "Device memory runs at " + percent(value)
           + " of its peak (threshold 80 %): only moving fewer bytes helps, by fusion, smaller types or reuse in the caches.";
}

Sentence l2(const ToolScope &scope)
{
    const double rate = scope.get(metric::l2HitRate);
    const double moved = scope.get(metric::dramBytes);
    const double needed = scope.trial.achievedBytes * scope.trial.latencyNs.value * 1e-9;
    if (rate >= l2Percent || needed <= 0 || moved <= rereads * needed)
        return {};
    return percent(rate) + " of the L2's sectors hit (threshold 50 %), and device memory moves "
           + formatFigure(moved / needed)
           + " times the bytes that the workload needs (threshold 1.5): blocks that share operands "
           + "usually run too far apart; another order of blocks brings them together.";
}

Sentence waves(const ToolScope &scope)
{
    const double value = scope.get(metric::waves);
    if (value <= 0)
        return {};
    const double used = value / std::ceil(value);
    if (used >= tailShare)
        return {};
    const std::string blocks = formatFigure(scope.get(metric::blocks));
    if (value < 1)
        return blocks + " blocks fill " + formatShare(value)
               + " of the places on the device (threshold 85 %): multiprocessors stay idle or half filled; smaller tiles or "
                 "splitting the reduction gives more blocks.";
    return blocks + " blocks are " + formatFigure(value)
           + " times what the device holds at once, so on average " + formatShare(used)
           + " of the places are filled (threshold 85 %): the last wave leaves the rest idle; another tile size or a persistent grid "
             "evens it out.";
}

/// Between the device's own time of the kernels and the run's lie launches and gaps.
Sentence gaps(const ToolScope &scope)
{
    const auto kernels = scope.figures.sum(metric::kernelTime);
    const double run = scope.trial.latencyNs.value;
    if (!kernels || run <= 0)
        return {};
    const double share = 1 - *kernels / run;
    if (share <= 0.2) // KernelPro: launch overhead > 20 %
        return {};
    return formatShare(share)
           + " of the run lies outside its kernels (threshold 20 %): launches and the gaps between them; fusing "
           + "kernels, or programmatic dependent launches, close them.";
}

} // namespace

std::vector<Tool> cudaTools()
{
    constexpr auto cuda = kernel::DeviceKind::Cuda;
    using enum Tool::Looks;
    return {
        {"waves", cuda, EachKernel, {metric::waves, metric::blocks}, false, waves},
        {"occupancy", cuda, EachKernel, {metric::theoreticalOccupancy}, false, occupancy},
        {"registers", cuda, EachKernel, {metric::registers}, false, registerUse},
        {"spills", cuda, EachKernel, {"spill_stores"}, false, spills},
        {"tiling", cuda, EachKernel, {metric::staticShared, metric::dynamicShared}, true, tiling},
        {"coalescing",
         cuda,
         EachKernel,
         {metric::sectorsPerLoad},
         false,
         loadCoalescing,
         {"long_scoreboard", "lg_throttle"}},
        {"store-coalescing",
         cuda,
         EachKernel,
         {metric::sectorsPerStore},
         false,
         storeCoalescing,
         {"lg_throttle", "drain"}},
        {"local-access",
         cuda,
         EachKernel,
         {metric::localLoads, metric::stallLongScoreboard},
         false,
         localAccess,
         {"long_scoreboard", "lg_throttle"}},
        {"stalls", cuda, EachKernel, {metric::stallLongScoreboard}, false, stallReasons, {}, worstStallName},
        {"barriers", cuda, EachKernel, {metric::stallBarrier}, false, barriers, {"barrier"}},
        {"bank-conflicts",
         cuda,
         EachKernel,
         {metric::bankConflicts, metric::sharedWavefronts},
         false,
         bankConflicts,
         {"short_scoreboard", "mio_throttle"}},
        {"tensor-cores",
         cuda,
         EachKernel,
         {metric::tensorActive},
         true,
         tensorCores,
         {"math_pipe_throttle", "gmma", "warpgroup_arrive"}},
        {"instruction-issue",
         cuda,
         EachKernel,
         {metric::issueActive},
         false,
         issue,
         {"selected", "not_selected"}},
        {"dram", cuda, EachKernel, {metric::dramThroughput}, false, dram, {"long_scoreboard", "drain"}},
        {"l2", cuda, EachKernel, {metric::l2HitRate, metric::dramBytes}, false, l2, {"long_scoreboard"}},
        {"gaps", cuda, WholeRun, {metric::kernelTime}, false, gaps},
    };
}

} // namespace klineage::gate
