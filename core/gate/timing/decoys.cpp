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
constexpr std::size_t mostChanges = 16; ///< of a sample, before a turn
constexpr std::size_t mostSpoilt = 4;   ///< after it

std::size_t below(std::size_t count)
{
    return static_cast<std::size_t>(entropy() % count);
}

/// So many of the contents, none twice: no sample that is timed holds a content twice, so that one which did could be told from it.
/// Seeds' and hard ones by turns, as long as there are both; or seeds' alone, which look as what is timed does.
std::vector<std::size_t> drawKnown(const std::vector<std::size_t> &contents, std::size_t seedCount,
                                   std::size_t count, bool looksTimed)
{
    std::vector<std::size_t> ofSeeds;
    std::vector<std::size_t> hard;
    for (const std::size_t index : randomOrder(contents.size(), entropy))
        (contents[index] < seedCount ? ofSeeds : hard).push_back(contents[index]);
    if (looksTimed && !ofSeeds.empty()) {
        hard.clear();
        count = std::min(count, ofSeeds.size());
    }
    std::vector<std::size_t> drawn;
    for (bool takesHard = below(2) == 0; drawn.size() < count; takesHard = !takesHard) {
        std::vector<std::size_t> &from = hard.empty() || (!takesHard && !ofSeeds.empty()) ? ofSeeds : hard;
        drawn.push_back(from.back());
        from.pop_back();
    }
    return drawn;
}

/// Sets that are not the first to be run are other contents in a few elements until shortly before the turn of one of them, and those
/// whose turn has been become so then: what is put off until later finds other inputs.
/// order: of the run on the set that holds the content of the same index.
void changeMidway(Decoy &decoy, const TimedBuffers &buffers, const std::vector<std::size_t> &contents,
                  const std::vector<std::size_t> &order)
{
    TimedRun &sample = decoy.run;
    const std::size_t changed = below(contents.size());
    if (order[changed] == 0 || below(4) == 0)
        return;
    // Most often right before its turn: the run before may have done it ahead.
    const std::size_t midway = order[changed] - (below(4) != 0 ? 0 : below(order[changed]));
    std::vector<std::size_t> later{changed};
    for (std::size_t i = 0; i < contents.size(); ++i) {
        if (i != changed && order[i] >= midway)
            later.push_back(i);
    }
    for (const std::size_t i : later) {
        // One place may leave what was worked out ahead as it was (a selection's threshold); several hardly ever do. But who looks at
        // some elements again is to find as few of them as can be.
        const std::size_t pieces = std::size_t{1} << below(4);
        for (std::size_t piece = 0; piece < pieces && sample.then.size() < mostChanges; ++piece) {
            const auto change = buffers.changeOf((sample.first + order[i]) % buffers.count(), contents[i]);
            if (!change)
                return;
            sample.midway = static_cast<int>(midway);
            sample.known.push_back(change->before);
            sample.then.push_back(change->then);
        }
    }
    for (std::size_t i = 0; i < contents.size() && decoy.spoilt.size() < mostSpoilt; ++i) {
        const std::size_t set = (sample.first + order[i]) % buffers.count();
        if (order[i] >= midway)
            continue;
        const auto change = buffers.changeOf(set, contents[i]);
        if (!change)
            return;
        sample.then.push_back(change->before);
        decoy.spoilt.insert(set);
    }
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
    Decoy decoy{std::move(run), {}, {}};
    TimedRun &sample = decoy.run;
    // Who tells hard contents from others at a glance still has to fear that the sample ends early.
    const bool looksTimed = below(2) == 0;
    if (sample.repeats > 1 && below(looksTimed ? 2 : 4) == 0) {
        sample.around = sample.repeats;
        sample.repeats = static_cast<int>(1 + below(static_cast<std::size_t>(sample.repeats - 1)));
    }
    const auto runs = std::min(static_cast<std::size_t>(sample.repeats), buffers.count());
    const std::size_t most = std::min(mostKnown, contents.size());
    const std::vector<std::size_t> drawn = drawKnown(
        contents, buffers.seedCount(), std::clamp<std::size_t>(runs / knownShare, 1, most), looksTimed);
    const std::vector<std::size_t> order = randomOrder(runs, entropy);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
        const std::size_t set = (sample.first + order[i]) % buffers.count();
        decoy.known[set] = drawn[i];
        const auto ranges = buffers.knownRanges(set, drawn[i]);
        sample.known.insert(sample.known.end(), ranges.begin(), ranges.end());
    }
    changeMidway(decoy, buffers, drawn, order);
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
