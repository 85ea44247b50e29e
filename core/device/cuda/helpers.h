// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"
#include "core/device/cuda/handle.h"

#include <cstddef>
#include <vector>

namespace klineage::gate::cuda {

/// The regions that one subject's sets are refilled in, on the device.
class FillTable
{
public:
    FillTable() = default;
    FillTable(DeviceMemory memory, std::vector<std::size_t> firsts)
        : m_memory(std::move(memory))
        , m_firsts(std::move(firsts))
    {}

    [[nodiscard]] bool empty() const { return m_firsts.size() < 2 || m_firsts.back() == 0; }
    [[nodiscard]] std::size_t setCount() const { return m_firsts.empty() ? 0 : m_firsts.size() - 1; }

private:
    friend class Helpers;
    DeviceMemory m_memory;
    std::vector<std::size_t> m_firsts; ///< regions of set i are [m_firsts[i], m_firsts[i + 1])
};

/// The outputs of one subject that are looked at, on the device, with room for what is found. slot: of each output in its set.
class OutputTable
{
public:
    OutputTable() = default;
    OutputTable(OutputSets outputs, DeviceMemory entries, DeviceMemory prints)
        : m_outputs(std::move(outputs))
        , m_entries(std::move(entries))
        , m_prints(std::move(prints))
    {}

    [[nodiscard]] bool empty() const { return !m_entries; }

private:
    friend class Helpers;
    OutputSets m_outputs;
    DeviceMemory m_entries; ///< one an output of a set
    DeviceMemory m_prints;  ///< tilesPerSet() a set
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

    /// regions[set]: (address, bytes).
    [[nodiscard]] Result<FillTable> makeTable(
        const std::vector<std::vector<std::pair<CUdeviceptr, std::size_t>>> &regions) const;
    /// addresses[set][output], of what `outputs` says.
    [[nodiscard]] Result<OutputTable> makeTable(const OutputSets &outputs,
                                                const std::vector<std::vector<CUdeviceptr>> &addresses) const;
    /// Enqueues the refill of `count` sets from `first` on (modulo), and overwrites the registers and shared memory of every SM, and
    /// what threads have as local memory when the subject's need localBytes of it (up to 16 KiB each).
    [[nodiscard]] Status refill(CUstream stream, const FillTable &table, std::size_t first, std::size_t count,
                                std::uint32_t word, std::size_t localBytes) const;
    /// What `count` launches over the sets from `first` on left in their outputs. The stream has finished before and after.
    [[nodiscard]] Result<std::vector<TilePrint>> look(CUstream stream, const OutputTable &table,
                                                      std::size_t first, std::size_t count,
                                                      std::uint32_t word) const;
    /// Enqueues the making of new content. The stream must have finished before the next call.
    [[nodiscard]] Status blend(CUstream stream, const std::vector<BlendJob> &jobs);
    /// Enqueues a reading of the clocks: 0 before the sample, 1 after it.
    [[nodiscard]] Status mark(CUstream stream, int which) const;
    /// Median over the SMs of cycles / nanoseconds between the two readings, in MHz; 0 when they say nothing. The stream has finished.
    [[nodiscard]] double clockMhz() const;

private:
    [[nodiscard]] Status launch(CUfunction function, unsigned gridX, unsigned gridY, unsigned threads,
                                unsigned shared, CUstream stream, void **arguments, const char *name) const;

    const Driver &m_driver;
    Module m_module;
    CUfunction m_fill = nullptr;
    CUfunction m_scrub = nullptr;
    CUfunction m_scrubLocal = nullptr;
    CUfunction m_scrubStack = nullptr;
    CUfunction m_scrubDeep = nullptr;
    CUfunction m_probe = nullptr;
    CUfunction m_print = nullptr;
    CUfunction m_blend = nullptr;
    unsigned m_multiprocessors = 0;
    unsigned m_blocksOf1024 = 2; ///< that an SM holds
    unsigned m_sharedBytes = 0;  ///< the most that one block may have
    DeviceMemory m_marks;        ///< two readings, m_multiprocessors marks each
    DeviceMemory m_blends;       ///< of the last blend()
};

} // namespace klineage::gate::cuda
