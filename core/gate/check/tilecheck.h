// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compares fingerprints of outputs. What a tolerance allows each element bounds what it can do to the sums: its errors at their worst to
// `sum`, and with signs that nobody knew beforehand eight of their standard deviations to `projection` (one in 10^13 honest tiles
// goes beyond that). So a tile that was not written, or that is wrong as a whole, is found surely; a single element when its error is
// some hundred times what is allowed. Equal hashes are equal bits.
#pragma once

#include "core/device/tileprint.h"
#include "core/gate/check/expected.h"
#include "core/workload/workload.h"

#include <optional>
#include <string>
#include <vector>

namespace klineage::gate {

/// What the fingerprint of a tile has to be near to.
struct ExpectedTile {
    std::size_t elements = 0;
    double sum = 0;
    double projection = 0;
    double squares = 0;
    std::uint32_t nonFinite = 0;
    double sumTolerance = 0;
    double projectionTolerance = 0;
    double normTolerance = 0; ///< of the root of `squares`
};

/// What can be compared of an output.
enum class TileRule {
    Full,
    AnyOrder, ///< rows are sets: signs mean nothing. The output is one tile.
    Written, ///< any of several answers is right: only that each element has one (one of them, in types of one or two bytes)
};

/// Of all tiles of an output, from the oracle's values. Multi-threaded.
[[nodiscard]] std::vector<ExpectedTile> expectedTiles(const ExpectedView &values, const TileLayout &layout,
                                                      const workload::Tolerance &tolerance,
                                                      std::uint32_t key);
/// Of all tiles of an output that another run left and nobody compared with the oracle: both may be off by the tolerance. rms: of such
/// outputs.
[[nodiscard]] std::vector<ExpectedTile> tilesLike(std::span<const TilePrint> prints, const TileLayout &layout,
                                                  const workload::Tolerance &tolerance, double rms);

struct TileFault {
    std::string what; ///< "4096 of its 4096 elements were not written", "its sum is 3.1 instead of 2.2"
    std::size_t unwritten = 0;
};
[[nodiscard]] std::optional<TileFault> tileFault(const TilePrint &print, const ExpectedTile &expected,
                                                 TileRule rule, kernel::DType dtype);

} // namespace klineage::gate
