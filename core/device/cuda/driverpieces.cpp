// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where memory of the driver's is that kernels can find: a kernel of the gate's looks where its own parameters lie when it comes from a large graph, and
// what the driver says where blocks of a cooperative launch meet.
#include "core/device/cuda/helpers.h"

#include <array>
#include <set>
#include <vector>

namespace klineage::gate::cuda {

namespace {

/// Pieces of memory, as the driver hands out of, that have one of the addresses.
std::vector<Region> piecesAround(std::set<std::uint64_t> addresses)
{
    std::set<std::uint64_t> pieces;
    for (const std::uint64_t address : addresses) {
        if (address != 0)
            pieces.insert(address / ScatteredMemory::pageBytes);
    }
    std::vector<Region> regions;
    for (const std::uint64_t piece : pieces)
        regions.push_back({piece * ScatteredMemory::pageBytes, ScatteredMemory::pageBytes});
    return regions;
}

constexpr std::size_t launches =
    1024; ///< with 4 KiB of parameters each: 4 MiB, more than the graphs of samples have
constexpr std::size_t parameters = 500; ///< words of each (struct Wide of the kernel)
struct Places {
    std::uint64_t parameters = 0;
    std::uint64_t meeting = 0;
};

} // namespace

Result<Helpers::DriverPieces> Helpers::driverPieces(CUstream stream)
{
    const std::string what = "find where the driver keeps parameters";
    std::vector<Places> places(launches);
    const std::size_t bytes = launches * sizeof(Places);
    if (auto done = ensureRoom(bytes); !done)
        return tl::unexpected(done.error());
    const CUdeviceptr to = m_room.get() + marksBytes();
    if (auto done = m_driver.toDevice(to, places.data(), bytes, what); !done)
        return tl::unexpected(done.error());
    const auto captured = captureGraph(m_driver, stream, [&] {
        CUlaunchAttribute together{};
        together.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
        together.value.cooperative = 1;
        CUlaunchConfig config{};
        config.gridDimX = config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = config.blockDimY = config.blockDimZ = 1;
        config.hStream = stream;
        config.attrs = &together;
        std::array<std::uint64_t, parameters> own{};
        Status done;
        for (std::size_t i = 0; i < launches && done; ++i) {
            CUdeviceptr place = to + i * sizeof(Places);
            void *arguments[] = {own.data(), &place};
            config.numAttrs = i == 0 ? 1 : 0; // the first one says where blocks meet
            done = m_driver.check(m_driver.launchKernelEx(&config, m_places, arguments, nullptr), what);
        }
        return done;
    });
    if (!captured)
        return tl::unexpected(captured.error());
    const auto graph = instantiateGraph(m_driver, *captured);
    if (!graph)
        return tl::unexpected(graph.error());
    const auto replay = [&] {
        const auto launched = m_driver.check(m_driver.graphLaunch(graph->get(), stream), what);
        return launched ? m_driver.check(m_driver.streamSynchronize(stream), what) : launched;
    };
    Status done = replay();
    if (done)
        done = m_driver.check(m_driver.memcpyDtoH(places.data(), to, bytes), what);
    if (!done)
        return tl::unexpected(done.error());
    std::set<std::uint64_t> found;
    for (const Places &place : places) {
        if (place.parameters / ScatteredMemory::pageBytes
            != places.front().meeting / ScatteredMemory::pageBytes)
            found.insert(place.parameters);
    }
    DriverPieces pieces{piecesAround(found), piecesAround({places.front().meeting})};
    for (std::vector<Region> *regions : {&pieces.parameters, &pieces.meeting}) {
        *regions = cut(*regions);
        constexpr std::uint64_t key = 0x9e3779b97f4a7c15;
        const auto before = sums(stream, *regions, key);
        if (!before)
            return tl::unexpected(before.error());
        if (done = replay(); !done)
            return tl::unexpected(done.error());
        const auto after = sums(stream, *regions, key);
        if (!after)
            return tl::unexpected(after.error());
        std::vector<Region> still; // what a replay changes by itself is the driver's to change
        for (std::size_t i = 0; i < regions->size(); ++i) {
            if ((*before)[i] == (*after)[i])
                still.push_back((*regions)[i]);
        }
        *regions = std::move(still);
    }
    return pieces;
}

} // namespace klineage::gate::cuda
