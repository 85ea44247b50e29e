// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/setcount.h"

#include "core/gate/timing/copyplaces.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

namespace klineage::gate {

namespace {

constexpr double cacheMultiple = 5;
constexpr double mostColdOnDevice =
    96; ///< other memory is brought into the cache before each sample there, and none has a set twice
constexpr std::size_t mostSetsOnHost =
    64; ///< inputs are taken out of its caches before each sample, however few sets there are
constexpr std::size_t mostSetsOnDevice = 256;
constexpr double longestRotationNs = 250e6;
constexpr std::size_t hostBudgetBytes = std::size_t{512} << 20;
constexpr double deviceBudgetBytes = 4.0 * (std::size_t{1} << 30);
constexpr double deviceShare = 0.25; ///< of its memory, at most
constexpr int hostPreparedLaunches = 1024;
constexpr int devicePreparedLaunches = 16384;
constexpr double shortRunNs = 150e3; ///< as the supervisor sees it, with the exchange around it
constexpr double shortRuns = 48;

/// What buffers of a device may take together.
double deviceBudget(const TrialContext &context)
{
    const auto &facts = context.session.helloEnvironment().facts;
    const auto memory = facts.find("memory_bytes");
    const double bytes = memory == facts.end() ? 0 : std::strtod(memory->second.c_str(), nullptr);
    return bytes > 0 ? std::min(deviceBudgetBytes, deviceShare * bytes) : deviceBudgetBytes;
}

} // namespace

std::size_t setCount(const PreparedCandidate &candidate, const CorrectnessResult &correct,
                     const TrialContext &context, double sampleNs)
{
    const auto bytes = static_cast<double>(CheckedSet::tensorBytes(*correct.timed.front()));
    const double roughNs = std::max(correct.roughNs, 1.0);
    const bool host = candidate.candidate.surface.device().isHost;
    const double colder =
        std::ceil(cacheMultiple * static_cast<double>(context.session.cacheBytes()) / bytes);
    const double cold = host ? colder : std::min(colder, mostColdOnDevice);
    // A sample visits no set twice, and short kernels need many runs a sample: events tell half a microsecond at best.
    const double wanted = std::max(cold, host || roughNs > shortRunNs ? sampleNs / roughNs : shortRuns);
    double everything = host ? bytes : 0;
    for (const HostTensor &tensor : correct.timed.front()->tensors)
        everything += host ? 0 : static_cast<double>(placeBytes(layoutOf(tensor).total()));
    double launches = 1; // those that are made: a plan may list more, each with a condition
    if (const auto plan = resolveFor(candidate, context, context.job.workload.cases.front())) {
        for (const kernel::ResolvedBuffer &workspace : plan->workspaces) {
            const BufferLayout layout{workspace.name, BufferKind::Workspace, workspace.dtype,
                                      static_cast<std::size_t>(workspace.bytes())};
            // On a host sets share them (TimedBuffers).
            everything += host ? 0 : static_cast<double>(placeBytes(layout.total()));
        }
        launches = std::max(launches, static_cast<double>(plan->launches.size()));
    }
    // Each launch is made ready once a set, and again for each block: a plan of hundreds would spend its time on that.
    const double ready = static_cast<double>(host ? hostPreparedLaunches : devicePreparedLaunches) / launches;
    const double affordable =
        (host ? static_cast<double>(hostBudgetBytes) : deviceBudget(context)) / everything;
    const double quick = longestRotationNs / roughNs;
    const auto seeds = static_cast<double>(context.unseenSeeds.size());
    const double count = std::min(
        {std::max(wanted, seeds), std::max(quick, seeds), std::max(ready, seeds), std::max(affordable, 1.0)});
    return std::clamp<std::size_t>(static_cast<std::size_t>(count), 1,
                                   host ? mostSetsOnHost : mostSetsOnDevice);
}

} // namespace klineage::gate
