// SPDX-License-Identifier: GPL-3.0-or-later
//
// Where memory of the driver's is that kernels can find: a kernel of the gate's looks where its own parameters lie when it comes from a graph, and
// what the driver says where blocks of a cooperative launch meet.
#include "core/device/cuda/helpers.h"

#include <array>
#include <vector>

namespace klineage::gate::cuda {

namespace {

std::vector<Region> pieceAround(std::uint64_t address)
{
    if (address == 0)
        return {};
    return {{address / ScatteredMemory::pageBytes * ScatteredMemory::pageBytes, ScatteredMemory::pageBytes}};
}

} // namespace

Result<Helpers::DriverPieces> Helpers::driverPieces(CUstream stream)
{
    const std::string what = "find where the driver keeps parameters";
    std::array<std::uint64_t, 2> places{};
    if (auto done = ensureRoom(sizeof places); !done)
        return tl::unexpected(done.error());
    CUdeviceptr to = m_room.get() + marksBytes();
    if (auto done = m_driver.toDevice(to, places.data(), sizeof places, what); !done)
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
        config.numAttrs = 1;
        std::uint64_t own = 0;
        void *arguments[] = {&own, &to};
        return m_driver.check(m_driver.launchKernelEx(&config, m_places, arguments, nullptr), what);
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
        done = m_driver.check(m_driver.memcpyDtoH(places.data(), to, sizeof places), what);
    if (!done)
        return tl::unexpected(done.error());
    DriverPieces pieces{pieceAround(places[0]), pieceAround(places[1])};
    if (places[0] / ScatteredMemory::pageBytes == places[1] / ScatteredMemory::pageBytes)
        pieces.parameters.clear();
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
