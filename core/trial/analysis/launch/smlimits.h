// SPDX-License-Identifier: GPL-3.0-or-later
//
// How many blocks a multiprocessor of an NVIDIA GPU holds at once, and what keeps more of them away. Pure.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::gate {

/// Where the figures of SmLimits are from.
inline constexpr auto smLimitsSource =
    "CUDA C++ Programming Guide, Technical Specifications per Compute Capability";

/// What a multiprocessor of one compute capability can hold.
struct SmLimits {
    int capability = 0;  ///< 90 is 9.0
    int threads = 0;     ///< resident
    int blocks = 0;      ///< resident
    int registers = 0;   ///< of 32 bits
    int sharedBytes = 0; ///< with the largest carve-out
    int sharedTaken = 0; ///< bytes of it that the system takes for each block
    int sharedUnit = 0;  ///< bytes: a block gets a multiple of it

    /// "9.0"
    [[nodiscard]] std::string name() const;
    [[nodiscard]] int sharedOfBlock() const { return sharedBytes - sharedTaken; } ///< at most, bytes
};

/// Of a platform such as "sm90"; nullptr when the table has no such capability, or the platform is none of CUDA.
[[nodiscard]] const SmLimits *smLimits(std::string_view platform);

enum class BlockLimit { Registers, SharedMemory, Threads, Blocks };
[[nodiscard]] const char *toString(BlockLimit limit); ///< registers shared_memory threads blocks

/// What a block asks of a multiprocessor.
struct BlockNeeds {
    int threads = 0;
    int registers = 0;      ///< a thread
    double sharedBytes = 0; ///< static and dynamic
};

/// How many blocks each resource has room for, and the least of that.
struct BlockRoom {
    int byRegisters = 0;
    int bySharedMemory = 0;
    int byThreads = 0;
    int byBlocks = 0;

    [[nodiscard]] int of(BlockLimit limit) const;
    [[nodiscard]] int blocks() const; ///< that are resident at once
    [[nodiscard]] std::vector<BlockLimit> limits()
        const; ///< whose room is the least; several where they agree
};

/// Registers are given out to warps in units of 256, and each of the four partitions of a multiprocessor has a quarter of them (NVIDIA's
/// cuda_occupancy.h). Nothing when the needs are none, or no block of them fits.
[[nodiscard]] std::optional<BlockRoom> blockRoom(const SmLimits &limits, const BlockNeeds &needs);

} // namespace klineage::gate
