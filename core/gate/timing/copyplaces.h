// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the copies of a tensor lie in their one buffer. Their distances are drawn from what the operating system knows, anew for each tensor
// and each trial: who knows where one copy is does not know where others are, and cannot do the work of their runs ahead of time but by
// searching for them. Distances are whole pages. Small tensors lie further apart than they are long, so that more
// pages of memory are reached than without gaps; kernels of 3 to 7 microseconds on an H200 took no longer for it.
#pragma once

#include <cstddef>
#include <vector>

namespace klineage::gate {

struct CopyPlaces {
    std::vector<std::size_t>
        offsets;         ///< ascending; in front of each, and behind the last one, there is a gap
    std::size_t end = 0; ///< of the last gap: bytes of the whole
};

/// A gap is from one page to so many bytes: as large as a copy, but 256 KiB to 2 MiB.
[[nodiscard]] std::size_t largestGap(std::size_t copyBytes);
/// Of one copy, with the gap in front of it, on the average.
[[nodiscard]] double meanPlaceBytes(std::size_t copyBytes);

/// copyBytes: a multiple of redZoneBytes, as every offset is one.
[[nodiscard]] CopyPlaces drawCopyPlaces(std::size_t copyBytes, std::size_t copies);

} // namespace klineage::gate
