// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/tileprint.h"

#include "core/base/vectorclones.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace klineage::gate {

namespace {

using kernel::DType;

constexpr std::size_t leastTile = 64;
constexpr std::uint32_t signBit = 0x80000000u;

/// Eight bytes of an element, folded into four; others are below 2^32 already.
constexpr std::uint32_t folded(std::uint64_t bits)
{
    return static_cast<std::uint32_t>(bits) ^ (static_cast<std::uint32_t>(bits >> 32) * 0x85ebca6bu);
}

std::uint64_t bitsOf(const std::byte *data, std::size_t size, std::size_t index)
{
    std::uint64_t bits = 0;
    std::memcpy(&bits, data + index * size, size); // little-endian, as every supported target is
    return bits;
}

std::uint64_t fillOf(std::uint32_t word, std::size_t size, std::size_t index)
{
    if (size == 8)
        return word | std::uint64_t{word} << 32;
    if (size == 4)
        return word;
    const std::size_t perWord = 4 / size;
    return (word >> (8 * size * (index % perWord))) & ((1u << (8 * size)) - 1);
}

void addElement(TilePrint &print, std::uint64_t bits, double value, std::uint64_t fill, std::size_t index,
                std::uint32_t key)
{
    const std::uint32_t random = elementBits(static_cast<std::uint32_t>(index), key);
    print.hash += std::uint64_t{folded(bits)} * (random | 1u);
    print.unwritten += bits == fill ? 1 : 0;
    if (!std::isfinite(value)) {
        ++print.nonFinite;
        return;
    }
    print.sum += value;
    print.projection += (random & signBit) != 0 ? -value : value;
    print.squares += value * value;
}

/// Of `block` elements of four-byte floats. In several loops, each of which the compiler makes vector instructions of.
constexpr std::size_t block = 256;
constexpr std::size_t lanes = 8;

struct Sums {
    double sum[lanes] = {};
    double projection[lanes] = {};
    double squares[lanes] = {};
};

KLINEAGE_VECTOR_CLONES
void addFloats(const std::uint32_t *bits, std::uint32_t first, std::uint32_t key, std::uint32_t word,
               TilePrint &print, Sums &sums)
{
    std::uint32_t random[block];
    for (std::size_t i = 0; i < block; ++i) {
        // elementBits(), in the loop: a function compiled for one processor is not inlined into one for another
        std::uint32_t x = (first + static_cast<std::uint32_t>(i)) * 0x9e3779b1u + key;
        x = (x ^ (x >> 16)) * 0x85ebca6bu;
        x = (x ^ (x >> 13)) * 0xc2b2ae35u;
        random[i] = x ^ (x >> 16);
    }
    std::uint64_t hash = 0;
    for (std::size_t i = 0; i < block; ++i)
        hash += std::uint64_t{bits[i]} * (random[i] | 1u);
    std::uint32_t nonFinite = 0;
    std::uint32_t unwritten = 0;
    float value[block];
    float turned[block];
    for (std::size_t i = 0; i < block; ++i) {
        const std::uint32_t isFinite = (bits[i] & 0x7f800000u) != 0x7f800000u ? 1u : 0u;
        const std::uint32_t finite = bits[i] & (0u - isFinite);
        const std::uint32_t flipped = finite ^ (random[i] & signBit);
        __builtin_memcpy(&value[i], &finite, sizeof finite);
        __builtin_memcpy(&turned[i], &flipped, sizeof flipped);
        nonFinite += 1u - isFinite;
        unwritten += bits[i] == word ? 1u : 0u;
    }
    for (std::size_t i = 0; i < block; i += lanes) {
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            const auto v = static_cast<double>(value[i + lane]);
            sums.sum[lane] += v;
            sums.projection[lane] += static_cast<double>(turned[i + lane]);
            sums.squares[lane] += v * v;
        }
    }
    print.hash += hash;
    print.nonFinite += nonFinite;
    print.unwritten += unwritten;
}

} // namespace

TileLayout tileLayout(DType dtype, std::size_t elements, std::size_t tiles)
{
    const std::size_t each =
        (elements + std::max<std::size_t>(tiles, 1) - 1) / std::max<std::size_t>(tiles, 1);
    return {dtype, elements, std::max(leastTile, (each + 15) / 16 * 16)};
}

TilePrint tilePrintOf(const std::byte *data, DType dtype, std::size_t first, std::size_t count,
                      std::uint32_t key, std::uint32_t word)
{
    TilePrint print;
    std::size_t i = first;
    if (dtype == DType::F32 || dtype == DType::TF32) {
        Sums sums;
        for (; i + block <= first + count; i += block)
            addFloats(reinterpret_cast<const std::uint32_t *>(data) + i, static_cast<std::uint32_t>(i), key,
                      word, print, sums);
        for (std::size_t lane = 0; lane < lanes; ++lane) {
            print.sum += sums.sum[lane];
            print.projection += sums.projection[lane];
            print.squares += sums.squares[lane];
        }
    }
    const std::size_t size = kernel::sizeOf(dtype);
    for (; i < first + count; ++i)
        addElement(print, bitsOf(data, size, i), kernel::loadElement(data, dtype, i), fillOf(word, size, i),
                   i, key);
    return print;
}

} // namespace klineage::gate
