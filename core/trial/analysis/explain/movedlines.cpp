// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/explain/movedlines.h"

#include "core/trial/analysis/explain/waits.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

/// Time by line, of the samples whose reasons are the group's.
std::map<int, MovedLine> timeByLine(const SampledRun &run, const std::string &group)
{
    std::map<int, MovedLine> lines;
    std::map<int, double> most;
    for (const Hotspot &spot : run.trial.hotspots) {
        const auto perSample = run.parts.perSample.find(spot.kernel);
        if (spot.line <= 0 || perSample == run.parts.perSample.end())
            continue;
        double samples = 0;
        for (const auto &[reason, count] : spot.stalls)
            samples += groupOfReason(reason) == group ? static_cast<double>(count) : 0;
        if (samples <= 0)
            continue;
        const double ns = samples * perSample->second * run.ns;
        MovedLine &line = lines[spot.line];
        line.deltaNs += ns;
        if (ns > most[spot.line]) {
            most[spot.line] = ns;
            line.kernel = spot.kernel;
        }
    }
    return lines;
}

} // namespace

std::vector<MovedLine> movedLines(const SampledRun &before, const SampledRun &after, const std::string &group,
                                  const SameLines &same)
{
    std::vector<MovedLine> moved;
    if (same.empty())
        return moved; // the lines of one side say nothing about those of the other
    std::map<int, MovedLine> newer = timeByLine(after, group);
    for (auto &[line, older] : timeByLine(before, group)) {
        MovedLine one{line, 0, -older.deltaNs, older.kernel};
        if (static_cast<std::size_t>(line) < same.size())
            one.after = same[static_cast<std::size_t>(line)];
        if (const auto twin = newer.find(one.after); twin != newer.end()) {
            one.deltaNs += twin->second.deltaNs;
            newer.erase(twin);
        }
        moved.push_back(std::move(one));
    }
    for (auto &[line, time] : newer) {
        const auto twin = std::find(same.begin(), same.end(), line);
        const int older = twin == same.end() ? 0 : static_cast<int>(twin - same.begin());
        moved.push_back({older, line, time.deltaNs, time.kernel});
    }
    std::sort(moved.begin(), moved.end(), [](const MovedLine &a, const MovedLine &b) {
        return std::abs(a.deltaNs) > std::abs(b.deltaNs);
    });
    return moved;
}

} // namespace klineage::gate
