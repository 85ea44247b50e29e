// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/driver.h"

#include <vector>

namespace klineage::gate::cuda {

/// Device memory in a range of addresses that has memory at some places alone: who reads or writes anywhere else faults. It cannot be
/// shared with other processes.
class ScatteredMemory
{
public:
    /// What a place begins at and is a multiple of.
    static constexpr std::size_t pageBytes = std::size_t{2} << 20;

    /// places: ascending offsets into the range. what: completes "Cannot …".
    [[nodiscard]] static Result<ScatteredMemory> make(const Driver &driver, CUdevice device,
                                                      std::size_t rangeBytes, std::size_t placeBytes,
                                                      const std::vector<std::size_t> &places,
                                                      const std::string &what);
    /// One place that nobody knows, rounded up to whole pages.
    [[nodiscard]] static Result<ScatteredMemory> hidden(const Driver &driver, CUdevice device,
                                                        std::size_t bytes, const std::string &what);

    ScatteredMemory() = default;
    ScatteredMemory(ScatteredMemory &&other) noexcept { *this = std::move(other); }
    ScatteredMemory &operator=(ScatteredMemory &&other) noexcept;
    ~ScatteredMemory();

    /// Of the range, or of the hidden place.
    [[nodiscard]] CUdeviceptr get() const { return m_begin; }
    [[nodiscard]] explicit operator bool() const { return m_range != 0; }

private:
    const Driver *m_driver = nullptr;
    CUdeviceptr m_range = 0;
    CUdeviceptr m_begin = 0;
    std::size_t m_rangeBytes = 0;
    std::size_t m_placeBytes = 0;
    std::vector<CUdeviceptr> m_mapped;
};

} // namespace klineage::gate::cuda
