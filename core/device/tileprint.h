// SPDX-License-Identifier: GPL-3.0-or-later
//
// What a launch left in its outputs, small enough to be made after every timed sample: some sums for each piece ("tile") of each output.
// They are made in the worker, on the device where it has one of its own: of buffers that the candidate wrote, by code that it
// did not write, after its launches have ended. So they rely on the candidate not changing the worker's code; where it can (a kernel on the
// CPU runs in the worker's process), the supervisor's own look at whole buffers is what remains.
#pragma once

#include "core/kernel/dtype.h"

#include <cstddef>
#include <cstdint>
#include <span>

namespace klineage::gate {

/// Of the elements of one tile. Multipliers and signs follow from the element's index in the output and a key that is new for each
/// block of rounds: the same bits under the same key have the same fingerprint, in whatever order they are added up (`hash`) or in
/// one fixed order (the others).
struct TilePrint {
    std::uint64_t hash = 0;      ///< of the bits
    double sum = 0;              ///< of the finite elements
    double projection = 0;       ///< of the finite elements with random signs
    double squares = 0;          ///< of the finite elements
    std::uint32_t nonFinite = 0; ///< elements
    std::uint32_t unwritten = 0; ///< elements that still are the fill word's bits

    bool operator==(const TilePrint &) const = default;
};
static_assert(sizeof(TilePrint) == 40);

/// How an output is cut: tiles of `tileElements`, the last one shorter.
struct TileLayout {
    kernel::DType dtype = kernel::DType::F32;
    std::size_t elements = 0;
    std::size_t tileElements = 0; ///< a multiple of 16

    [[nodiscard]] std::size_t bytes() const { return elements * kernel::sizeOf(dtype); }
    [[nodiscard]] std::size_t tiles() const { return (elements + tileElements - 1) / tileElements; }
};

/// About `tiles` tiles, none smaller than 64 elements.
[[nodiscard]] TileLayout tileLayout(kernel::DType dtype, std::size_t elements, std::size_t tiles);

/// 32 random bits for an element. The top one says its sign, all with the lowest set are its multiplier.
[[nodiscard]] constexpr std::uint32_t elementBits(std::uint32_t index, std::uint32_t key)
{
    std::uint32_t x = index * 0x9e3779b1u + key;
    x = (x ^ (x >> 16)) * 0x85ebca6bu;
    x = (x ^ (x >> 13)) * 0xc2b2ae35u;
    return x ^ (x >> 16);
}

/// The fingerprint of elements [first, first + count) of an output at `data` (its first element, 4-byte aligned). `word`: what it was
/// filled with, from its beginning on.
[[nodiscard]] TilePrint tilePrintOf(const std::byte *data, kernel::DType dtype, std::size_t first,
                                    std::size_t count, std::uint32_t key, std::uint32_t word);

} // namespace klineage::gate
