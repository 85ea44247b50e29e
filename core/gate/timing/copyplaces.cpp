// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/copyplaces.h"

#include "core/base/random.h"
#include "core/gate/check/bufferimage.h"

#include <algorithm>

namespace klineage::gate {

namespace {

constexpr std::size_t page = redZoneBytes;
constexpr std::size_t leastRange = std::size_t{256} << 10;
constexpr std::size_t mostRange = std::size_t{2} << 20;

} // namespace

std::size_t largestGap(std::size_t copyBytes)
{
    return std::clamp(copyBytes / page * page, leastRange, mostRange);
}

double meanPlaceBytes(std::size_t copyBytes)
{
    return static_cast<double>(copyBytes) + static_cast<double>(page + largestGap(copyBytes)) / 2;
}

CopyPlaces drawCopyPlaces(std::size_t copyBytes, std::size_t copies)
{
    const std::size_t range = largestGap(copyBytes) / page;
    const auto gap = [range] { return page * (1 + static_cast<std::size_t>(entropy() % range)); };
    CopyPlaces places;
    for (std::size_t i = 0; i < copies; ++i) {
        places.offsets.push_back(places.end + gap());
        places.end = places.offsets.back() + copyBytes;
    }
    places.end += gap();
    return places;
}

} // namespace klineage::gate
