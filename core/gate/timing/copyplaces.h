// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where the copies of a tensor lie in their one buffer. Between them, before and behind there is no memory, but for
// the rest of the last page of each: who knows where one copy is does
// not know where others are, and cannot look for them, because whoever reaches where nothing is is ended. Distances are drawn from what the
// operating system knows, anew for each tensor and each trial.
#pragma once

#include <cstddef>
#include <vector>

namespace klineage::gate {

struct CopyPlaces {
    std::vector<std::size_t> offsets; ///< ascending
    std::size_t placeBytes = 0; ///< that there is memory of at each: the copy's, in whole pages of 2 MiB
    std::size_t rangeBytes = 0; ///< of all, with what is empty
};

/// In whole pages, as a device hands memory out: what lies behind a buffer in its last page is nobody's.
[[nodiscard]] std::size_t placeBytes(std::size_t copyBytes);
/// Each lies in one of 127 pages, all of which but its own are empty.
[[nodiscard]] CopyPlaces drawCopyPlaces(std::size_t copyBytes, std::size_t copies);

} // namespace klineage::gate
