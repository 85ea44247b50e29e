// SPDX-License-Identifier: GPL-3.0-or-later
//
// Compiled without contraction (CMakeLists.txt): a product that is not rounded would make other bits than the device does.
#include "core/device/blend.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace klineage::gate {

namespace {

constexpr std::size_t block = 64;

/// The finalizer of SplitMix64: one number is spread over all bits.
constexpr std::uint64_t spread(std::uint64_t x)
{
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebull;
    return x ^ (x >> 31);
}

__extension__ typedef unsigned __int128 Wide;

/// In [0, count), from all bits of x.
constexpr std::size_t below(std::uint64_t x, std::size_t count)
{
    return static_cast<std::size_t>((static_cast<Wide>(x) * count) >> 64);
}

using Block = std::array<float, block>;

void load(const std::byte *data, kernel::DType dtype, std::size_t count, Block &values)
{
    if (dtype == kernel::DType::F32 || dtype == kernel::DType::TF32) {
        std::memcpy(values.data(), data, count * sizeof(float));
    } else if (dtype == kernel::DType::BF16) {
        for (std::size_t i = 0; i < count; ++i) {
            std::uint16_t half = 0;
            std::memcpy(&half, data + i * sizeof half, sizeof half);
            const std::uint32_t bits = std::uint32_t{half} << 16;
            std::memcpy(&values[i], &bits, sizeof bits);
        }
    } else {
        for (std::size_t i = 0; i < count; ++i)
            values[i] = static_cast<float>(kernel::loadElement(data, dtype, i));
    }
}

void store(const Block &values, std::size_t count, kernel::DType dtype, std::byte *data)
{
    if (dtype == kernel::DType::F32 || dtype == kernel::DType::TF32) {
        std::memcpy(data, values.data(), count * sizeof(float));
    } else if (dtype == kernel::DType::BF16) {
        for (std::size_t i = 0; i < count; ++i) {
            const std::uint16_t half = kernel::floatToBf16(values[i]);
            std::memcpy(data + i * sizeof half, &half, sizeof half);
        }
    } else {
        for (std::size_t i = 0; i < count; ++i)
            kernel::storeElement(data, dtype, i, static_cast<double>(values[i]));
    }
}

void mix(const PieceSource &source, kernel::DType dtype, const std::byte *first, const std::byte *second,
         std::byte *out, std::size_t length)
{
    const std::size_t size = kernel::sizeOf(dtype);
    Block x{};
    Block y{};
    for (std::size_t i = 0; i < length; i += block) {
        const std::size_t count = std::min(block, length - i);
        load(first + (source.first + i) * size, dtype, count, x);
        load(second + (source.second + i) * size, dtype, count, y);
        const std::uint32_t salt = source.salt + static_cast<std::uint32_t>(i);
        for (std::uint32_t j = 0; j < block; ++j)
            x[j] = ((source.c * x[j] + source.s * y[j]) + source.shift) * offOf(salt, source.step, j);
        store(x, count, dtype, out + i * size);
    }
}

/// The elements of a piece from the `at`-th on, from as many others.
void vary(const PieceSource &source, kernel::DType dtype, const std::byte *from, std::byte *out,
          std::size_t at, std::size_t length)
{
    const std::size_t size = kernel::sizeOf(dtype);
    Block x{};
    for (std::size_t i = 0; i < length; i += block) {
        const std::size_t count = std::min(block, length - i);
        load(from + i * size, dtype, count, x);
        const std::uint32_t salt = source.salt + static_cast<std::uint32_t>(at + i);
        for (std::uint32_t j = 0; j < block; ++j)
            x[j] *= offOf(salt, source.step, j);
        store(x, count, dtype, out + (at + i) * size);
    }
}

} // namespace

std::uint64_t contentKey(std::uint64_t content, std::uint64_t key)
{
    return content == 0 ? key : spread(content ^ spread(key));
}

PieceSource sourceOf(const Blend &blend, std::size_t elements, std::size_t index)
{
    const std::size_t length = std::min(blend.piece, elements - index * blend.piece);
    const std::size_t places = (elements - length) / blend.unit + 1;
    const std::uint64_t at = spread(blend.key) + 4 * static_cast<std::uint64_t>(index);
    const std::uint64_t angle = spread(at + 2);
    PieceSource source;
    source.first = blend.unit * below(spread(at), places);
    source.second = blend.unit * below(spread(at + 1), places);
    const bool isVaried = blend.kind == Blend::Kind::Varied;
    source.turn = isVaried || blend.kind == Blend::Kind::Turned ? below(spread(at + 3), length) : 0;
    source.ofSecond = (angle >> 63) != 0;
    if (isVaried) {
        source.salt = static_cast<std::uint32_t>(angle);
        source.step = 0x1p-9f;
    }
    if (isMix(blend.kind)) {
        // The tangent of half the angle, 1/4 to 3/4 in steps of 2^-20: t and t² are exact, so that every processor finds the same.
        const double t = static_cast<double>((1u << 18) + (angle & ((1u << 19) - 1))) * 0x1p-20;
        const double square = t * t;
        source.c = static_cast<float>((1 - square) / (1 + square));
        source.s = static_cast<float>(2 * t / (1 + square));
        const double rest = 1 - static_cast<double>(source.c) - static_cast<double>(source.s);
        source.shift = static_cast<float>(blend.mean * rest);
        source.salt = static_cast<std::uint32_t>(spread(at + 3));
        source.step = blend.kind == Blend::Kind::Mix ? 0x1p-17f : 0;
    }
    return source;
}

void blendPieces(const Blend &blend, std::span<const std::byte> first, std::span<const std::byte> second,
                 std::span<std::byte> out, std::size_t begin, std::size_t end)
{
    const std::size_t size = kernel::sizeOf(blend.dtype);
    const std::size_t elements = out.size() / size;
    for (std::size_t index = begin; index < end; ++index) {
        const PieceSource source = sourceOf(blend, elements, index);
        const std::size_t length = std::min(blend.piece, elements - index * blend.piece);
        std::byte *target = out.data() + index * blend.piece * size;
        if (isMix(blend.kind)) {
            mix(source, blend.dtype, first.data(), second.data(), target, length);
            continue;
        }
        const std::byte *piece = (source.ofSecond ? second : first).data() + source.first * size;
        const std::size_t rest = length - source.turn;
        if (blend.kind == Blend::Kind::Varied) {
            vary(source, blend.dtype, piece + source.turn * size, target, 0, rest);
            vary(source, blend.dtype, piece, target, rest, source.turn);
            continue;
        }
        std::memcpy(target, piece + source.turn * size, rest * size);
        std::memcpy(target + rest * size, piece, source.turn * size);
    }
}

} // namespace klineage::gate
