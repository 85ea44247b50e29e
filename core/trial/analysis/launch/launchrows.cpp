// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/launch/launchrows.h"

#include "core/base/listtext.h"

#include <algorithm>

namespace klineage::gate {

namespace {

constexpr auto noLaunch = "–";
constexpr auto notRecorded = "not recorded";
constexpr auto notKnown = "not known";

using Extent = std::array<std::int64_t, 3>;

/// "128 × 4": trailing ones are left out.
std::string extentText(const Extent &extent)
{
    std::string text = std::to_string(extent[0]);
    for (std::size_t i = 1; i < extent.size(); ++i) {
        if (std::any_of(extent.begin() + static_cast<std::ptrdiff_t>(i), extent.end(),
                        [](std::int64_t size) { return size != 1; }))
            text += " × " + std::to_string(extent[i]);
    }
    return text;
}

/// Short, for a column; the sentence has the figures.
std::string limitsText(const LaunchNumbers &numbers)
{
    std::vector<std::string> words;
    for (const BlockLimit limit : numbers.limits)
        words.emplace_back(limit == BlockLimit::SharedMemory ? "shared" : toString(limit));
    return words.empty() ? std::string(notKnown) : joined(words, " + ");
}

LaunchCell number(const std::optional<double> &value)
{
    return {value, value ? std::string() : notRecorded};
}

LaunchCell extent(const std::optional<Extent> &value)
{
    return {{}, value ? extentText(*value) : std::string(notRecorded)};
}

LaunchCell room(const LaunchNumbers &numbers, BlockLimit limit)
{
    return numbers.room ? number(numbers.room->of(limit)) : LaunchCell{{}, notKnown};
}

struct Line {
    const char *label;
    const char *unit;
    LaunchCell (*of)(const LaunchNumbers &);
    bool isUsuallyOne = false; ///< and then not worth a row
};

using N = LaunchNumbers;
constexpr Line lines[] = {
    {"Launches like this", "", [](const N &n) { return number(n.count); }, true},
    {"Grid", "", [](const N &n) { return extent(n.grid); }},
    {"Block", "", [](const N &n) { return extent(n.block); }},
    {"Cluster", "",
     [](const N &n) {
         return n.cluster ? extent(n.cluster) : LaunchCell{{}, "1"};
     },
     true},
    {"Blocks", "", [](const N &n) { return number(n.blocks); }},
    {"Threads / block", "", [](const N &n) { return number(n.threads); }},
    {"Threads in all", "", [](const N &n) { return number(n.threadsInAll()); }},
    {"Waves", "", [](const N &n) { return number(n.waves); }},
    {"Multiprocessors", "", [](const N &n) { return number(n.multiprocessors); }},
    {"Registers / thread", "", [](const N &n) { return number(n.registers); }},
    {"Static shared memory / block", "B", [](const N &n) { return number(n.staticShared); }},
    {"Dynamic shared memory / block", "B", [](const N &n) { return number(n.dynamicShared); }},
    {"Resident blocks / SM", "", [](const N &n) { return number(n.blocksPerSm); }},
    {"Limited by", "",
     [](const N &n) {
         return LaunchCell{{}, limitsText(n)};
     }},
    {"Registers would allow", "", [](const N &n) { return room(n, BlockLimit::Registers); }},
    {"Shared memory would allow", "", [](const N &n) { return room(n, BlockLimit::SharedMemory); }},
    {"Threads would allow", "", [](const N &n) { return room(n, BlockLimit::Threads); }},
    {"Blocks, at most", "", [](const N &n) { return room(n, BlockLimit::Blocks); }},
    {"Theoretical occupancy", "%", [](const N &n) { return number(n.theoreticalOccupancy); }},
    {"Achieved occupancy", "%", [](const N &n) { return number(n.achievedOccupancy); }},
};

bool isSilent(const LaunchCell &cell)
{
    return !cell.value && (cell.text == noLaunch || cell.text == notRecorded || cell.text == notKnown);
}

bool isOne(const LaunchCell &cell)
{
    return cell.value == 1.0 || cell.text == "1" || cell.text == noLaunch;
}

struct Pair {
    const LaunchNumbers *before = nullptr;
    const LaunchNumbers *after = nullptr;
};

std::vector<Pair> pairs(const std::vector<LaunchNumbers> &before, const std::vector<LaunchNumbers> &after)
{
    // One launch each: the same work under whatever name.
    if (before.size() == 1 && after.size() == 1)
        return {{&before.front(), &after.front()}};
    std::vector<Pair> all;
    for (const LaunchNumbers &one : after)
        all.push_back({nullptr, &one});
    std::vector<Pair> gone;
    for (const LaunchNumbers &one : before) {
        const auto twin = std::find_if(all.begin(), all.end(), [&](const Pair &pair) {
            return !pair.before && pair.after->kernel == one.kernel;
        });
        if (twin != all.end())
            twin->before = &one;
        else
            gone.push_back({&one, nullptr});
    }
    all.insert(all.end(), gone.begin(), gone.end());
    return all;
}

std::string nameOf(const Pair &pair)
{
    if (!pair.before || !pair.after || pair.before->kernel == pair.after->kernel)
        return pair.after ? pair.after->kernel : pair.before->kernel;
    return pair.before->kernel + ", " + pair.after->kernel;
}

} // namespace

std::vector<LaunchRow> launchRows(const std::vector<LaunchNumbers> &before,
                                  const std::vector<LaunchNumbers> &after)
{
    std::vector<LaunchRow> rows;
    const LaunchCell none{{}, noLaunch};
    for (const Pair &pair : pairs(before, after)) {
        for (const Line &line : lines) {
            LaunchRow row{nameOf(pair), line.label, line.unit, pair.before ? line.of(*pair.before) : none,
                          pair.after ? line.of(*pair.after) : none};
            if ((isSilent(row.before) && isSilent(row.after))
                || (line.isUsuallyOne && isOne(row.before) && isOne(row.after)))
                continue;
            row.differs = !isSilent(row.before) && !isSilent(row.after) && row.before != row.after;
            rows.push_back(std::move(row));
        }
    }
    return rows;
}

} // namespace klineage::gate
