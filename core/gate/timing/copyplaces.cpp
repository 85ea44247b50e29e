// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/timing/copyplaces.h"

#include "core/base/random.h"

namespace klineage::gate {

namespace {

constexpr std::size_t pageBytes = std::size_t{2} << 20; ///< what a device maps at once
constexpr std::size_t pagesAround = 128;                ///< that are a copy's, besides those it fills

} // namespace

std::size_t placeBytes(std::size_t copyBytes)
{
    return (copyBytes + pageBytes - 1) / pageBytes * pageBytes;
}

CopyPlaces drawCopyPlaces(std::size_t copyBytes, std::size_t copies)
{
    CopyPlaces places;
    places.placeBytes = placeBytes(copyBytes);
    const std::size_t share = places.placeBytes + pagesAround * pageBytes;
    for (std::size_t i = 0; i < copies; ++i)
        places.offsets.push_back(i * share + pageBytes * (1 + entropy() % (pagesAround - 1)));
    places.rangeBytes = copies * share;
    return places;
}

} // namespace klineage::gate
