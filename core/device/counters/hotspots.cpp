// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/counters/hotspots.h"

#include <algorithm>
#include <map>

namespace klineage::gate::counters {

std::vector<Hotspot> rankHotspots(std::span<const ListedInstruction> samples, std::size_t most)
{
    std::map<std::pair<std::string, int>, Hotspot> byLine;
    for (const ListedInstruction &sample : samples) {
        Hotspot &line = byLine[{sample.kernel, sample.line}];
        line.kernel = sample.kernel;
        line.line = sample.line;
        line.samples += sample.samples;
        for (const auto &[reason, count] : sample.stalls)
            line.stalls[reason] += count;
    }
    std::vector<Hotspot> ranked;
    for (auto &[key, line] : byLine) {
        if (line.samples > 0)
            ranked.push_back(std::move(line));
    }
    std::stable_sort(ranked.begin(), ranked.end(),
                     [](const Hotspot &a, const Hotspot &b) { return a.samples > b.samples; });
    if (ranked.size() > most)
        ranked.resize(most);
    return ranked;
}

std::string stallReason(std::string_view counter)
{
    constexpr std::string_view prefix = "smsp__pcsamp_warps_issue_stalled_";
    constexpr std::string_view notIssued = "_not_issued";
    if (counter.substr(0, prefix.size()) != prefix)
        return {};
    counter.remove_prefix(prefix.size());
    if (counter.size() >= notIssued.size() && counter.substr(counter.size() - notIssued.size()) == notIssued)
        return {};
    return std::string(counter);
}

} // namespace klineage::gate::counters
