// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"
#include "core/device/cuda/handle.h"

#include <cstddef>
#include <vector>

namespace klineage::gate::cuda {

/// Bytes that are refilled, as klineage_fill reads them.
struct Region {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
};

/// As klineage_guard reads it: one of GuardedCopies, with addresses.
struct Guard {
    std::uint64_t address = 0;
    std::uint64_t front = 0; ///< bytes of the zone before it
    std::uint64_t bytes = 0;
    std::uint64_t behind = 0; ///< bytes of the zone after it
    std::uint64_t zones = 0;
};

/// Memory that is to hold these bytes.
struct Held {
    CUdeviceptr address = 0;
    std::span<const std::byte> bytes;
};

/// As klineage_print reads it.
struct LookedAt {
    std::uint64_t address;
    std::uint64_t elements;
    std::uint64_t tile;
    std::uint64_t kind;
    std::uint64_t slot;
};

/// The regions that one subject's sets are refilled in. What a kernel could write to is made anew for each use.
class FillTable
{
public:
    FillTable() = default;
    /// Both by set. written: by the runs on it.
    FillTable(std::vector<std::vector<Region>> written, std::vector<std::vector<Region>> others)
        : m_written(std::move(written))
        , m_others(std::move(others))
    {}

    [[nodiscard]] std::vector<Region> all() const { return untouchedBy(0, 0); }
    /// What `count` runs over the sets from `first` on may not change.
    [[nodiscard]] std::vector<Region> untouchedBy(std::size_t first, std::size_t count) const;

private:
    std::vector<std::vector<Region>> m_written;
    std::vector<std::vector<Region>> m_others;
};

/// The outputs of one subject that are looked at.
class OutputTable
{
public:
    OutputTable() = default;
    /// addresses[set][output], of what `outputs` says.
    OutputTable(OutputSets outputs, const std::vector<std::vector<CUdeviceptr>> &addresses);

    [[nodiscard]] bool empty() const { return m_entries.empty(); }

private:
    friend class Helpers;
    OutputSets m_outputs;
    std::vector<LookedAt> m_entries; ///< one an output of a set
};

/// As klineage_blend reads it.
struct BlendJob {
    std::uint64_t to;
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t elements;
    std::uint64_t piece;
    std::uint64_t unit;
    std::uint64_t key;
    double mean;
    std::uint64_t kind;        ///< of Blend
    std::uint64_t elementKind; ///< 0: f32, 1: f16, 2: bf16; of others: 8 and the size of an element
};
[[nodiscard]] BlendJob blendJob(const CopyRange &range, CUdeviceptr to, CUdeviceptr from, CUdeviceptr with);

/// The gate's own kernels in a worker: what makes each timed sample start from nothing, and what reads the clocks around it.
class Helpers
{
public:
    explicit Helpers(const Driver &driver)
        : m_driver(driver)
    {}
    Helpers(const Helpers &) = delete;
    Helpers &operator=(const Helpers &) = delete;

    [[nodiscard]] Status install(CUdevice device, std::span<const std::byte> cubin);
    [[nodiscard]] bool installed() const { return bool(m_module); }

    /// What every refill() puts back besides.
    void setGuards(std::vector<Guard> guards, std::vector<Region> slack)
    {
        m_guards = std::move(guards);
        m_slack = std::move(slack);
    }
    /// Enqueues the refill of all sets, and overwrites the registers and shared memory of every SM, and
    /// what threads have as local memory when somebody's use it (16 KiB each). The second-level cache is left with nothing of a
    /// candidate's. The stream has finished before.
    [[nodiscard]] Status refill(CUstream stream, const FillTable &table, std::uint32_t word, bool usesLocal);
    /// Enqueues the overwriting of what threads have as local memory, as in refill(). The first time the driver takes room for it, and writes where
    /// that is beside the parameters of graphs that it replays later: call it before any of them is watched.
    [[nodiscard]] Status overwriteStacks(CUstream stream, std::uint32_t word) const;
    /// A byte of `regions`, of the guarded zones or of the slack that is not as refill() left it, or of `held` that is another; 0: none.
    /// The stream has finished before and after.
    [[nodiscard]] Result<CUdeviceptr> touched(CUstream stream, std::vector<Region> regions,
                                              std::uint32_t word, const std::vector<Held> &held);
    /// Long regions in pieces, of which there are enough to keep the device busy: what sums() wants.
    [[nodiscard]] std::vector<Region> cut(const std::vector<Region> &regions) const;
    /// What the words of each region add up to, under a key. Words that are `resting`, if that is not 0, become 0 and
    /// count as 0. The stream has finished before and after.
    [[nodiscard]] Result<std::vector<std::uint64_t>> sums(CUstream stream, const std::vector<Region> &regions,
                                                          std::uint64_t key, std::uint32_t resting = 0);
    /// Memory of the driver's that kernels find by where their parameters lie in a graph, and by what the blocks of a cooperative launch meet at,
    /// in the pieces that it hands out of: of nobody's, it lasts from launch to launch. But for what a replay changes by itself. The stream
    /// has finished before and after.
    struct DriverPieces {
        std::vector<Region> parameters; ///< that lie elsewhere
        std::vector<Region>
            meeting; ///< an honest cooperative launch leaves words here whose highest bit is another
    };
    [[nodiscard]] Result<DriverPieces> driverPieces(CUstream stream);
    /// What `count` launches over the sets from `first` on left in their outputs. The stream has finished before and after.
    [[nodiscard]] Result<std::vector<TilePrint>> look(CUstream stream, const OutputTable &table,
                                                      std::size_t first, std::size_t count,
                                                      std::uint32_t word);
    /// Enqueues the making of new content. The stream has finished before, and must have before the next call.
    [[nodiscard]] Status blend(CUstream stream, const std::vector<BlendJob> &jobs);
    /// Enqueues a reading of the clocks: 0 before the sample, 1 after it.
    [[nodiscard]] Status mark(CUstream stream, int which) const;
    /// Median over the SMs of cycles / nanoseconds between the two readings, in MHz; 0 when they say nothing. The stream has finished.
    [[nodiscard]] double clockMhz() const;

private:
    /// Makes the room larger when it has less than so many bytes behind the marks.
    [[nodiscard]] Status ensureRoom(std::size_t bytes);
    [[nodiscard]] std::size_t marksBytes() const;
    /// Fills the second-level cache with other memory than any candidate's, so that nothing of theirs is in it, marked to stay or not
    /// yet written back.
    [[nodiscard]] Status flushCache(CUstream stream);
    /// klineage_fill or klineage_touched.
    [[nodiscard]] Status overRegions(CUfunction function, CUstream stream, CUdeviceptr table,
                                     std::size_t regions, std::uint32_t word, CUdeviceptr found);
    /// klineage_guard or klineage_zones.
    [[nodiscard]] Status overGuards(CUfunction function, CUstream stream, CUdeviceptr table,
                                    std::size_t guards, CUdeviceptr found);
    [[nodiscard]] Status launch(CUfunction function, unsigned gridX, unsigned gridY, unsigned threads,
                                unsigned shared, CUstream stream, void **arguments, const char *name) const;

    const Driver &m_driver;
    CUdevice m_device = 0;
    Module m_module;
    CUfunction m_fill = nullptr;
    CUfunction m_guard = nullptr;
    CUfunction m_touched = nullptr;
    CUfunction m_zones = nullptr;
    CUfunction m_sum = nullptr;
    CUfunction m_wipe = nullptr;
    CUfunction m_scrub = nullptr;
    CUfunction m_scrubStack = nullptr;
    CUfunction m_probe = nullptr;
    CUfunction m_places = nullptr;
    CUfunction m_print = nullptr;
    CUfunction m_blend = nullptr;
    CUfunction m_flush = nullptr;
    CUfunction m_unmark = nullptr;
    unsigned m_multiprocessors = 0;
    unsigned m_blocksOf1024 = 2; ///< that an SM holds
    unsigned m_sharedBytes = 0;  ///< the most that one block may have
    std::vector<Guard> m_guards;
    std::vector<Region> m_slack;
    /// Two readings of the clocks, m_multiprocessors marks each; behind them what the gate's kernels are given and give, written anew by
    /// the host for each use and wiped before each sample: who finds it all the same finds nothing.
    ScatteredMemory m_room;
    std::size_t m_roomBytes = 0;
    ScatteredMemory m_other; ///< twice as much as the second-level cache holds, of nobody's
    std::uint64_t m_otherBytes = 0;
};

} // namespace klineage::gate::cuda
