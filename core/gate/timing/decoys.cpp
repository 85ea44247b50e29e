// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/decoys.h"

#include "core/gate/check/randomorder.h"

#include <algorithm>

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

Decoy drawDecoy(TimedRun run, const TimedBuffers &buffers, bool mayEndEarly)
{
    Decoy decoy{std::move(run), {}};
    TimedRun &sample = decoy.run;
    if (mayEndEarly && sample.repeats > 1 && below(3) == 0) {
        sample.around = sample.repeats;
        sample.repeats = static_cast<int>(1 + below(static_cast<std::size_t>(sample.repeats - 1)));
    }
    const auto runs = std::min(static_cast<std::size_t>(sample.repeats), buffers.count());
    const std::size_t hard = buffers.knownCount() - buffers.seedCount();
    const std::vector<std::size_t> order = randomOrder(runs, entropy);
    for (std::size_t i = 0; i < std::clamp<std::size_t>(runs / knownShare, 1, mostKnown); ++i) {
        const std::size_t set = (sample.first + order[i]) % buffers.count();
        const std::size_t content =
            hard > 0 && below(2) == 0 ? buffers.seedCount() + below(hard) : below(buffers.seedCount());
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
