// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/trial/analysis/launch/smlimits.h"

#include "core/kernel/surfaces/device.h"

#include <algorithm>
#include <cmath>

namespace klineage::gate {

namespace {

constexpr int KiB = 1024;
constexpr int warpSize = 32;
constexpr int registerUnit = 256; // of a warp
constexpr int partitions = 4;     // of a multiprocessor, since 5.0
constexpr int all64K = 65536;

// One KiB of each block is the system's since 8.0; shared memory is given out in units of 128 bytes since then, of 256 before
// (cuda_occupancy.h).
// clang-format off
constexpr SmLimits table[] = {
    // capability, threads, blocks, registers, shared, taken, unit
    { 75, 1024, 16, all64K,  64 * KiB,   0, 256},
    { 80, 2048, 32, all64K, 164 * KiB, KiB, 128},
    { 86, 1536, 16, all64K, 100 * KiB, KiB, 128},
    { 87, 1536, 16, all64K, 164 * KiB, KiB, 128},
    { 89, 1536, 24, all64K, 100 * KiB, KiB, 128},
    { 90, 2048, 32, all64K, 228 * KiB, KiB, 128},
    {100, 2048, 32, all64K, 228 * KiB, KiB, 128},
    {103, 2048, 32, all64K, 228 * KiB, KiB, 128},
    {120, 1536, 24, all64K, 100 * KiB, KiB, 128},
};
// clang-format on

constexpr BlockLimit allLimits[] = {BlockLimit::Registers, BlockLimit::SharedMemory, BlockLimit::Threads,
                                    BlockLimit::Blocks};

constexpr int roundedUp(int value, int unit)
{
    return (value + unit - 1) / unit * unit;
}

} // namespace

std::string SmLimits::name() const
{
    return std::to_string(capability / 10) + "." + std::to_string(capability % 10);
}

const SmLimits *smLimits(std::string_view platform)
{
    const auto capability = kernel::computeCapability(platform);
    const auto found = std::find_if(std::begin(table), std::end(table),
                                    [&](const SmLimits &one) { return one.capability == capability; });
    return found == std::end(table) ? nullptr : found;
}

const char *toString(BlockLimit limit)
{
    switch (limit) {
    case BlockLimit::Registers:
        return "registers";
    case BlockLimit::SharedMemory:
        return "shared_memory";
    case BlockLimit::Threads:
        return "threads";
    case BlockLimit::Blocks:
        return "blocks";
    }
    return "";
}

int BlockRoom::of(BlockLimit limit) const
{
    switch (limit) {
    case BlockLimit::Registers:
        return byRegisters;
    case BlockLimit::SharedMemory:
        return bySharedMemory;
    case BlockLimit::Threads:
        return byThreads;
    case BlockLimit::Blocks:
        return byBlocks;
    }
    return 0;
}

int BlockRoom::blocks() const
{
    return std::min({byRegisters, bySharedMemory, byThreads, byBlocks});
}

std::vector<BlockLimit> BlockRoom::limits() const
{
    std::vector<BlockLimit> least;
    for (const BlockLimit limit : allLimits) {
        if (of(limit) == blocks())
            least.push_back(limit);
    }
    return least;
}

std::optional<BlockRoom> blockRoom(const SmLimits &limits, const BlockNeeds &needs)
{
    if (needs.threads <= 0 || needs.registers <= 0 || needs.sharedBytes < 0
        || needs.sharedBytes > limits.sharedBytes)
        return {};
    const int warps = roundedUp(needs.threads, warpSize) / warpSize;
    const int registersOfWarp = roundedUp(needs.registers * warpSize, registerUnit);
    const int shared =
        roundedUp(static_cast<int>(std::ceil(needs.sharedBytes)) + limits.sharedTaken, limits.sharedUnit);
    BlockRoom room;
    room.byRegisters = limits.registers / partitions / registersOfWarp * partitions / warps;
    room.bySharedMemory = shared > 0 ? limits.sharedBytes / shared : limits.blocks;
    room.byThreads = limits.threads / (warps * warpSize);
    room.byBlocks = limits.blocks;
    return room.blocks() > 0 ? std::optional(room) : std::nullopt;
}

} // namespace klineage::gate
