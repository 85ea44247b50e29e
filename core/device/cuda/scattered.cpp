// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/scattered.h"

#include "core/base/random.h"

#include <algorithm>

namespace klineage::gate::cuda {

namespace {

constexpr std::size_t hiddenAmong = 128; ///< pages of a range that hold a hidden place

} // namespace

Result<ScatteredMemory> ScatteredMemory::make(const Driver &driver, CUdevice device, std::size_t rangeBytes,
                                              std::size_t placeBytes, const std::vector<std::size_t> &places,
                                              const std::string &what)
{
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, device};
    CUmemAccessDesc access{};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    ScatteredMemory memory;
    memory.m_driver = &driver;
    if (auto done =
            driver.check(driver.memAddressReserve(&memory.m_range, rangeBytes, pageBytes, 0, 0), what);
        !done)
        return tl::unexpected(done.error());
    memory.m_begin = memory.m_range;
    memory.m_rangeBytes = rangeBytes;
    memory.m_placeBytes = placeBytes;
    for (const std::size_t place : places) {
        const CUdeviceptr at = memory.m_range + place;
        CUmemGenericAllocationHandle pages = 0;
        if (auto done = driver.check(driver.memCreate(&pages, placeBytes, &properties, 0), what); !done)
            return tl::unexpected(done.error());
        const CUresult mapped = driver.memMap(at, placeBytes, 0, pages, 0);
        driver.memRelease(pages); // lives as long as it is mapped
        if (auto done = driver.check(mapped, what); !done)
            return tl::unexpected(done.error());
        memory.m_mapped.push_back(at);
        if (auto done = driver.check(driver.memSetAccess(at, placeBytes, &access, 1), what); !done)
            return tl::unexpected(done.error());
    }
    return memory;
}

Result<ScatteredMemory> ScatteredMemory::hidden(const Driver &driver, CUdevice device, std::size_t bytes,
                                                const std::string &what)
{
    const std::size_t rounded = (std::max<std::size_t>(bytes, 1) + pageBytes - 1) / pageBytes * pageBytes;
    const std::size_t place = pageBytes * (1 + entropy() % (hiddenAmong - 1));
    auto memory = make(driver, device, rounded + pageBytes * (hiddenAmong + 1), rounded, {place}, what);
    if (memory)
        memory->m_begin = memory->m_range + place;
    return memory;
}

ScatteredMemory &ScatteredMemory::operator=(ScatteredMemory &&other) noexcept
{
    std::swap(m_driver, other.m_driver);
    std::swap(m_range, other.m_range);
    std::swap(m_begin, other.m_begin);
    std::swap(m_rangeBytes, other.m_rangeBytes);
    std::swap(m_placeBytes, other.m_placeBytes);
    std::swap(m_mapped, other.m_mapped);
    return *this;
}

ScatteredMemory::~ScatteredMemory()
{
    if (m_range == 0)
        return;
    for (const CUdeviceptr at : m_mapped)
        m_driver->memUnmap(at, m_placeBytes);
    m_driver->memAddressFree(m_range, m_rangeBytes);
}

} // namespace klineage::gate::cuda
