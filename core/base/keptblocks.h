// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>

namespace klineage {

/// Large blocks of memory that are kept when they are let go, for the next one who needs as much: pages that are new to a process are
/// slow at first (each is found and cleared when it is first touched), and tensors of hundreds of megabytes come and go in each trial.
/// Thread-safe.
class KeptBlocks
{
public:
    static constexpr std::size_t leastBytes = std::size_t{2} << 20; ///< smaller ones are not worth it

    /// Holds anything. Throws std::bad_alloc.
    [[nodiscard]] static void *take(std::size_t bytes);
    /// bytes: as they were asked for.
    static void give(void *block, std::size_t bytes) noexcept;

    [[nodiscard]] static std::size_t
    keptBytes();                 ///< an eighth of the machine's memory at most, and no more than 6 GiB
    static void drop() noexcept; ///< lets go of what is kept
};

} // namespace klineage
