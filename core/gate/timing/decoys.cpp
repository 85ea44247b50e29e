// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/decoys.h"

#include "core/gate/check/randomorder.h"

#include <algorithm>
#include <numeric>

namespace klineage::gate {

namespace {

constexpr std::size_t mostKnown = 16; ///< sets of a sample
constexpr std::size_t knownShare = 4; ///< one set of so many
constexpr std::size_t mostPlaces = 5;

std::size_t below(std::size_t count)
{
    return static_cast<std::size_t>(entropy() % count);
}

} // namespace

std::vector<std::size_t> drawContents(const TimedBuffers &buffers, bool all)
{
    const std::size_t seeds = buffers.seedCount();
    const std::size_t hard = buffers.knownCount() - seeds;
    if (all) {
        std::vector<std::size_t> contents(seeds + hard);
        std::iota(contents.begin(), contents.end(), std::size_t{0});
        return contents;
    }
    std::vector<std::size_t> contents{below(seeds)};
    if (hard > 0)
        contents.push_back(seeds + below(hard));
    return contents;
}

Decoy drawDecoy(TimedRun run, const TimedBuffers &buffers, const std::vector<std::size_t> &contents)
{
    Decoy decoy{std::move(run), {}};
    TimedRun &sample = decoy.run;
    if (sample.repeats > 1 && below(3) == 0) {
        sample.around = sample.repeats;
        sample.repeats = static_cast<int>(1 + below(static_cast<std::size_t>(sample.repeats - 1)));
    }
    const auto runs = std::min(static_cast<std::size_t>(sample.repeats), buffers.count());
    const auto hard = std::partition_point(
        contents.begin(), contents.end(), [&](std::size_t content) { return content < buffers.seedCount(); });
    const auto seeds = static_cast<std::size_t>(hard - contents.begin());
    const std::vector<std::size_t> order = randomOrder(runs, entropy);
    for (std::size_t i = 0; i < std::clamp<std::size_t>(runs / knownShare, 1, mostKnown); ++i) {
        const std::size_t set = (sample.first + order[i]) % buffers.count();
        const std::size_t content = seeds < contents.size() && below(2) == 0
                                        ? contents[seeds + below(contents.size() - seeds)]
                                        : contents[below(seeds)];
        decoy.known[set] = content;
        const auto ranges = buffers.knownRanges(set, content);
        sample.known.insert(sample.known.end(), ranges.begin(), ranges.end());
    }
    return decoy;
}

std::multiset<std::size_t> drawPlaces(std::size_t samples)
{
    std::multiset<std::size_t> places;
    do
        places.insert(below(samples + 1));
    while (places.size() < mostPlaces && below(2) == 0);
    return places;
}

} // namespace klineage::gate
