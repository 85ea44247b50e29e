// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/launch/launchnumbers.h"

#include "core/base/listtext.h"
#include "core/base/numbertext.h"
#include "core/trial/metricnames.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <tuple>

namespace klineage::gate {

namespace {

using Member = std::optional<double> LaunchNumbers::*;

struct Recorded {
    const char *metric;
    Member member;
};

// Once a launch.
constexpr Recorded ofLaunch[] = {
    {metric::blocks, &LaunchNumbers::blocks},
    {metric::threadsPerBlock, &LaunchNumbers::threads},
    {metric::dynamicShared, &LaunchNumbers::dynamicShared},
    {metric::blocksPerSm, &LaunchNumbers::blocksPerSm},
    {metric::waves, &LaunchNumbers::waves},
    {metric::theoreticalOccupancy, &LaunchNumbers::theoreticalOccupancy},
    {"work_groups", &LaunchNumbers::blocks},
    {"work_group_size", &LaunchNumbers::threads},
};

// Once a kernel.
constexpr Recorded ofKernel[] = {
    {metric::registers, &LaunchNumbers::registers},
    {metric::staticShared, &LaunchNumbers::staticShared},
    {metric::warpsActive, &LaunchNumbers::achievedOccupancy},
    {"local_mem", &LaunchNumbers::staticShared},
};

/// The launch whose metric this is: of a kernel that is launched several times, each has its own, in their order.
struct Place {
    std::string kernel;
    std::size_t launch = 0;

    friend auto operator<=>(const Place &, const Place &) = default;
};

struct Launches {
    std::vector<Place> order;
    std::map<Place, LaunchNumbers> numbers;

    LaunchNumbers &at(const Place &place)
    {
        const auto [entry, fresh] = numbers.try_emplace(place);
        if (fresh) {
            entry->second.kernel = place.kernel;
            order.push_back(place);
        }
        return entry->second;
    }
};

Launches recordedLaunches(const Trial &trial)
{
    Launches launches;
    std::map<std::pair<std::string, std::string>, std::size_t> seen;
    for (const Metric &metric : trial.metrics) {
        for (const Recorded &recorded : ofLaunch) {
            if (!metric.kernel.empty() && metric.name == recorded.metric) {
                const std::size_t launch = seen[{metric.kernel, metric.name}]++;
                launches.at({metric.kernel, launch}).*recorded.member = metric.value;
            }
        }
    }
    for (const Metric &metric : trial.metrics) {
        for (const Recorded &recorded : ofKernel) {
            for (auto &[place, numbers] : launches.numbers) {
                if (metric.name == recorded.metric && place.kernel == metric.kernel)
                    numbers.*recorded.member = metric.value;
            }
        }
    }
    return launches;
}

std::optional<double> fact(const Trial &trial, const char *name)
{
    const auto found = trial.environment.facts.find(name);
    const double value = found == trial.environment.facts.end() ? 0 : numberIn(found->second);
    return value > 0 ? std::optional(value) : std::nullopt;
}

std::int64_t product(const std::array<std::int64_t, 3> &extent)
{
    return extent[0] * extent[1] * extent[2];
}

/// Takes the plan's extents where they come to what was recorded: another workload file, or tunables that were not kept, would not.
void takePlan(LaunchNumbers &numbers, const kernel::ResolvedLaunch &launch)
{
    if (numbers.blocks && *numbers.blocks == static_cast<double>(product(launch.grid)))
        numbers.grid = launch.grid;
    if (numbers.threads && *numbers.threads == static_cast<double>(product(launch.block)))
        numbers.block = launch.block;
    if (numbers.grid && product(launch.cluster) > 1)
        numbers.cluster = launch.cluster;
}

std::string limitWords(BlockLimit limit, const LaunchNumbers &numbers)
{
    switch (limit) {
    case BlockLimit::Registers:
        return "registers (" + shortestText(*numbers.registers) + " a thread)";
    case BlockLimit::SharedMemory:
        return "shared memory ("
               + significantText(
                   (numbers.staticShared.value_or(0) + numbers.dynamicShared.value_or(0)) / 1024, 4)
               + " KiB a block)";
    case BlockLimit::Threads:
        return "threads (" + shortestText(*numbers.threads) + " a block)";
    case BlockLimit::Blocks:
        return "the number of blocks";
    }
    return {};
}

std::string missingFor(const Trial &trial, const LaunchNumbers &numbers, const SmLimits *limits)
{
    if (const kernel::DeviceTraits &device = trial.surface.device(); !device.occupancy)
        return std::string("Not known: ") + device.name
               + " does not say how many work-groups a compute unit holds.";
    if (!limits)
        return "Not known: the table of limits has no platform " + trial.environment.platform + ".";
    std::vector<std::string> missing;
    if (!numbers.registers)
        missing.emplace_back("registers");
    if (!numbers.threads)
        missing.emplace_back("threads a block");
    if (!numbers.blocksPerSm)
        missing.emplace_back("blocks a multiprocessor");
    return missing.empty() ? std::string() : "Not known: not recorded were " + listed(missing) + ".";
}

void findLimit(const Trial &trial, LaunchNumbers &numbers)
{
    const SmLimits *limits = smLimits(trial.environment.platform);
    numbers.limitText = missingFor(trial, numbers, limits);
    if (!numbers.limitText.empty())
        return;
    const auto room =
        blockRoom(*limits, {static_cast<int>(*numbers.threads), static_cast<int>(*numbers.registers),
                            numbers.staticShared.value_or(0) + numbers.dynamicShared.value_or(0)});
    const int said = static_cast<int>(*numbers.blocksPerSm);
    if (!room || room->blocks() != said) {
        numbers.limitText = "Not known: the driver said " + std::to_string(said) + ", the limits of "
                            + limits->name() + " would allow "
                            + (room ? std::to_string(room->blocks()) : std::string("none")) + ".";
        return;
    }
    numbers.room = room;
    numbers.limits = room->limits();
    std::vector<std::string> words;
    for (const BlockLimit limit : numbers.limits)
        words.push_back(limitWords(limit, numbers));
    const bool isOne = numbers.limits.size() == 1
                       && (numbers.limits.front() == BlockLimit::SharedMemory
                           || numbers.limits.front() == BlockLimit::Blocks);
    std::string text = listed(words) + (isOne ? " allows" : " allow") + " no more than "
                       + std::to_string(said) + (said == 1 ? " block" : " blocks") + " on a multiprocessor.";
    text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
    numbers.limitText = std::move(text);
}

bool areAlike(const LaunchNumbers &a, const LaunchNumbers &b)
{
    const auto key = [](const LaunchNumbers &n) {
        return std::tie(n.kernel, n.grid, n.block, n.cluster, n.blocks, n.threads, n.dynamicShared,
                        n.blocksPerSm, n.waves);
    };
    return key(a) == key(b);
}

} // namespace

std::optional<double> LaunchNumbers::threadsInAll() const
{
    return blocks && threads ? std::optional(*blocks * *threads) : std::nullopt;
}

std::vector<LaunchNumbers> launchNumbers(const Trial &trial, const kernel::ResolvedPlan *plan)
{
    Launches launches = recordedLaunches(trial);
    if (plan) {
        std::map<std::string, std::size_t> seen;
        for (const kernel::ResolvedLaunch &launch : plan->launches) {
            const auto found = launches.numbers.find({launch.kernel, seen[launch.kernel]++});
            if (found != launches.numbers.end())
                takePlan(found->second, launch);
        }
    }
    std::vector<LaunchNumbers> all;
    for (const Place &place : launches.order) {
        LaunchNumbers &numbers = launches.numbers.at(place);
        const auto same = std::find_if(all.begin(), all.end(),
                                       [&](const LaunchNumbers &other) { return areAlike(other, numbers); });
        if (same != all.end()) {
            ++same->count;
            continue;
        }
        // A compiler that tells of registers speaks of static shared memory only where there is some.
        if (numbers.registers && !numbers.staticShared)
            numbers.staticShared = 0;
        numbers.multiprocessors = fact(trial, trial.surface.device().unitsFact);
        findLimit(trial, numbers);
        all.push_back(std::move(numbers));
    }
    return all;
}

kernel::Bindings recordedDeviceFacts(const Trial &trial)
{
    kernel::Bindings facts;
    const kernel::DeviceTraits &device = trial.surface.device();
    if (const auto units = fact(trial, device.unitsFact))
        facts["sm_count"] = static_cast<std::int64_t>(*units);
    if (const SmLimits *limits = device.occupancy ? smLimits(trial.environment.platform) : nullptr) {
        facts["warp_size"] = device.warpSize;
        facts["max_shared"] = std::int64_t{limits->sharedOfBlock()};
    }
    return facts;
}

} // namespace klineage::gate
