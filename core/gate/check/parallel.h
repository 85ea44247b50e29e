// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace klineage::gate {

/// Calls work(index) for every index below count, on all hardware threads, and waits. Work must not throw.
/// One hardware thread, or one piece of work, runs in the caller alone.
template <typename Work>
void parallelFor(std::size_t count, const Work &work)
{
    const std::size_t threads =
        std::min<std::size_t>(count, std::max(1u, std::thread::hardware_concurrency()));
    std::atomic<std::size_t> next{0};
    const auto loop = [&] {
        for (std::size_t i = next++; i < count; i = next++)
            work(i);
    };
    std::vector<std::jthread> helpers;
    for (std::size_t i = 1; i < threads; ++i)
        helpers.emplace_back(loop);
    loop();
}

/// Elements a piece that are worth a thread; even, so that a Box–Muller pair never straddles two pieces.
inline constexpr std::size_t usualGrain = std::size_t{1} << 16;

/// Calls work(begin, end) over [0, count) in pieces of at most `grain`.
template <typename Work>
void parallelRanges(std::size_t count, std::size_t grain, const Work &work)
{
    parallelFor((count + grain - 1) / grain,
                [&](std::size_t piece) { work(piece * grain, std::min(count, (piece + 1) * grain)); });
}

/// memcpy on all hardware threads, where there is enough to copy.
inline void parallelCopy(std::byte *target, std::span<const std::byte> from)
{
    parallelRanges(from.size(), std::size_t{1} << 22, [&](std::size_t begin, std::size_t end) {
        std::memcpy(target + begin, from.data() + begin, end - begin);
    });
}

/// memcmp on all hardware threads, where there is enough to compare: whether all bytes are the same.
[[nodiscard]] inline bool parallelEqual(std::span<const std::byte> a, std::span<const std::byte> b)
{
    if (a.size() != b.size())
        return false;
    std::atomic<bool> equal{true};
    parallelRanges(a.size(), std::size_t{1} << 22, [&](std::size_t begin, std::size_t end) {
        if (std::memcmp(a.data() + begin, b.data() + begin, end - begin) != 0)
            equal = false;
    });
    return equal;
}

} // namespace klineage::gate
