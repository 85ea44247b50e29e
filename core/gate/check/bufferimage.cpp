// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/check/bufferimage.h"

#include "core/base/random.h"
#include "core/gate/check/parallel.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate {

namespace {

using kernel::DType;

constexpr std::size_t grainBytes = std::size_t{1} << 20;
constexpr std::uint64_t zoneBeforeStream = 1;
constexpr std::uint64_t zoneAfterStream = 2;
constexpr std::uint64_t contentStream = 3;

void putRandom(std::byte *target, std::size_t bytes, const CounterRandom &random, std::uint64_t counter)
{
    while (bytes > 0) {
        const std::uint64_t bits = random.bits(counter++);
        const std::size_t count = std::min(bytes, sizeof bits);
        std::memcpy(target, &bits, count);
        target += count;
        bytes -= count;
    }
}

/// A NaN of the type with a random sign and payload, in its low bytes.
std::uint64_t nanBits(DType dtype, std::uint64_t random)
{
    switch (dtype) {
    case DType::F64:
        return random | 0x7ff8000000000000ull;
    case DType::F32:
    case DType::TF32:
        return (random & 0xffffffff) | 0x7fc00000u;
    case DType::F16:
        return (random & 0xffff) | 0x7e00u;
    case DType::BF16:
        return (random & 0xffff) | 0x7fc0u;
    case DType::F8E4M3:
        return (random & 0x80) | 0x7fu;
    case DType::F8E5M2:
        return (random & 0xff) | 0x7eu;
    default:
        return random;
    }
}

/// ±2^20 … 2^40 or, in narrow types, ± something near the largest finite value.
double garbage(DType dtype, std::uint64_t random)
{
    const double sign = (random & 1) != 0 ? -1.0 : 1.0;
    const double fraction = 1.0 + static_cast<double>(random >> 40) * 0x1p-24;
    switch (dtype) {
    case DType::F16:
        return sign * fraction * 0x1p14;
    case DType::F8E4M3:
        return sign * fraction * 0x1p7;
    case DType::F8E5M2:
        return sign * fraction * 0x1p13;
    default:
        return sign * fraction * static_cast<double>(std::uint64_t{1} << (20 + (random >> 1) % 21));
    }
}

/// Fills whole elements; trailing bytes that are no whole element are random.
void putNans(std::byte *target, std::size_t bytes, DType dtype, const CounterRandom &random,
             std::uint64_t counter)
{
    const std::size_t size = kernel::sizeOf(dtype);
    std::size_t done = 0;
    for (; done + size <= bytes; done += size) {
        const std::uint64_t bits = nanBits(dtype, random.bits(counter++));
        std::memcpy(target + done, &bits, size); // little-endian, as every supported target is
    }
    putRandom(target + done, bytes - done, random, counter);
}

void putGarbage(std::byte *target, std::size_t bytes, DType dtype, const CounterRandom &random,
                std::uint64_t counter)
{
    const std::size_t size = kernel::sizeOf(dtype);
    for (std::size_t i = 0; i < bytes / size; ++i)
        kernel::storeElement(target, dtype, i, garbage(dtype, random.bits(counter + i)));
    putRandom(target + bytes / size * size, bytes % size, random, counter + bytes / size);
}

void putZone(const BufferLayout &layout, std::byte *target, std::size_t bytes, const CounterRandom &random)
{
    if (layout.kind != BufferKind::Output && kernel::isFloat(layout.dtype))
        putNans(target, bytes, layout.dtype, random, 0);
    else
        putRandom(target, bytes, random, 0);
}

std::vector<std::byte> zone(const BufferLayout &layout, std::uint64_t key, bool before)
{
    const std::size_t bytes = before ? redZoneBytes : layout.total() - redZoneBytes - layout.bytes;
    std::vector<std::byte> expected(bytes);
    putZone(layout, expected.data(), bytes, CounterRandom(key, before ? zoneBeforeStream : zoneAfterStream));
    return expected;
}

std::optional<RedZoneHit> compareZone(std::span<const std::byte> expected, std::span<const std::byte> got,
                                      bool before)
{
    if (std::memcmp(expected.data(), got.data(), expected.size()) == 0)
        return std::nullopt;
    RedZoneHit hit;
    hit.before = before;
    hit.distance = expected.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
        if (expected[i] == got[i])
            continue;
        ++hit.changed;
        hit.distance = std::min(hit.distance, before ? expected.size() - 1 - i : i);
    }
    return hit;
}

} // namespace

void composeImage(const BufferLayout &layout, std::uint64_t key, std::span<const std::byte> content,
                  std::span<std::byte> image)
{
    const auto before = zone(layout, key, true);
    const auto after = zone(layout, key, false);
    std::copy(before.begin(), before.end(), image.begin());
    parallelCopy(image.data() + layout.offset(), content.first(layout.bytes));
    std::copy(after.begin(), after.end(),
              image.begin() + static_cast<std::ptrdiff_t>(layout.offset() + layout.bytes));
}

std::uint32_t fillWord(std::uint64_t key)
{
    // 0x7ff1 … 0x7fff: NaN in half, bfloat16 and fp8, and as the upper half of float and double.
    const auto low = static_cast<std::uint32_t>(1 + key % 15);
    const auto high = static_cast<std::uint32_t>(1 + (key >> 8) % 15);
    return 0x7ff07ff0u | low | (high << 16) | ((key >> 16) % 2 ? 0x80000000u : 0u);
}

std::uint32_t poisonWord(std::uint64_t key)
{
    return fillWord(CounterRandom(key, contentStream).bits(0));
}

RawBytes poison(const BufferLayout &layout, std::uint64_t key, Fill fill)
{
    RawBytes content(layout.bytes);
    const CounterRandom random(key, contentStream);
    const bool isFloat = kernel::isFloat(layout.dtype);
    if (fill == Fill::Word) {
        const std::uint32_t word = poisonWord(key);
        parallelRanges(content.size(), grainBytes, [&](std::size_t begin, std::size_t end) {
            for (std::size_t i = begin; i < end; i += sizeof word)
                std::memcpy(content.data() + i, &word, std::min(sizeof word, end - i));
        });
        return content;
    }
    parallelRanges(content.size(), grainBytes, [&](std::size_t begin, std::size_t end) {
        // Pieces are multiples of every element size, so that counters can be byte positions.
        std::byte *target = content.data() + begin;
        if (!isFloat)
            putRandom(target, end - begin, random, begin);
        else if (fill == Fill::Nan)
            putNans(target, end - begin, layout.dtype, random, begin);
        else
            putGarbage(target, end - begin, layout.dtype, random, begin);
    });
    return content;
}

std::vector<std::byte> composeZones(const BufferLayout &layout, std::uint64_t key)
{
    auto zones = zone(layout, key, true);
    const auto after = zone(layout, key, false);
    zones.insert(zones.end(), after.begin(), after.end());
    return zones;
}

namespace {

std::optional<RedZoneHit> findHitIn(const BufferLayout &layout, std::uint64_t key,
                                    std::span<const std::byte> before, std::span<const std::byte> after)
{
    if (auto hit = compareZone(zone(layout, key, true), before, true))
        return hit;
    return compareZone(zone(layout, key, false), after, false);
}

} // namespace

std::optional<RedZoneHit> findZoneHit(const BufferLayout &layout, std::uint64_t key,
                                      std::span<const std::byte> zones)
{
    return findHitIn(layout, key, zones.first(redZoneBytes), zones.subspan(redZoneBytes));
}

std::optional<RedZoneHit> findRedZoneHit(const BufferLayout &layout, std::uint64_t key,
                                         std::span<const std::byte> image)
{
    return findHitIn(layout, key, image.first(redZoneBytes), image.subspan(redZoneBytes + layout.bytes));
}

} // namespace klineage::gate
