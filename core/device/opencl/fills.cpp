// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/fills.h"

#include <set>
#include <utility>

namespace klineage::gate::opencl {

namespace {

using Places = std::set<std::pair<BufferId, std::size_t>>;

std::pair<BufferId, std::size_t> placeOf(const FillRegion &region)
{
    return {region.buffer, region.offsetBytes};
}

} // namespace

void Fills::set(FillSets sets)
{
    m_sets = std::move(sets);
    m_areShared = false;
    Places all;
    for (const auto &regions : m_sets) {
        for (const FillRegion &region : regions)
            m_areShared = !all.insert(placeOf(region)).second || m_areShared;
    }
}

std::vector<FillRegion> Fills::before(const TimedRun &run) const
{
    std::vector<FillRegion> wanted;
    Places all;
    for (std::size_t i = 0; i < run.setsConcerned(m_sets.size()); ++i) {
        for (const FillRegion &region : of(run, i)) {
            if (all.insert(placeOf(region)).second)
                wanted.push_back(region);
        }
    }
    return wanted;
}

std::vector<FillRegion> Fills::between(const TimedRun &run, std::size_t done) const
{
    std::vector<FillRegion> wanted;
    if (!m_areShared)
        return wanted;
    Places used;
    for (std::size_t i = 0; i < done; ++i) {
        for (const FillRegion &region : of(run, i))
            used.insert(placeOf(region));
    }
    for (const FillRegion &region : of(run, done)) {
        if (used.contains(placeOf(region)))
            wanted.push_back(region);
    }
    return wanted;
}

} // namespace klineage::gate::opencl
