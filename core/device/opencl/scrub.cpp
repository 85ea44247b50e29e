// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/scrub.h"

#include "core/device/opencl/scrubkernel.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <sys/mman.h>

namespace klineage::gate::opencl {

namespace {

constexpr std::uint64_t pageBytes = 4096;

/// Memory that looks like the stacks of threads: behind a guard of a few pages that nobody may touch.
std::vector<std::pair<std::uint64_t, std::uint64_t>> threadStacks()
{
    constexpr std::uint64_t largestGuard = 64 << 10;
    std::vector<std::pair<std::uint64_t, std::uint64_t>> stacks;
    std::ifstream maps("/proc/self/maps");
    std::uint64_t guardEnd = 0;
    for (std::string line; std::getline(maps, line);) {
        std::uint64_t low = 0;
        std::uint64_t high = 0;
        char rights[5] = {};
        if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &low, &high, rights) != 3)
            continue;
        if (std::string_view(rights) == "---p" && high - low <= largestGuard)
            guardEnd = high;
        else if (std::string_view(rights) == "rw-p" && low == guardEnd)
            stacks.emplace_back(low, high);
    }
    return stacks;
}

} // namespace

Result<Scrub> Scrub::make(const Device &device, cl_context context)
{
    const Api &api = *device.api;
    Scrub scrub;
    scrub.m_device = &device;
    CompileOutput output;
    auto program = buildProgram(device, context, scrubSource, {}, output);
    if (!program)
        return fail(ErrorCode::Internal, "Cannot compile the gate's own kernel: " + program.error().message,
                    output.log);
    scrub.m_program = std::move(*program);
    cl_int code = CL_SUCCESS;
    scrub.m_kernel = Kernel(api, api.clCreateKernel(scrub.m_program.get(), "klineage_scrub", &code));
    cl_int none = 0;
    if (code == CL_SUCCESS)
        scrub.m_arrived = Memory(api, api.clCreateBuffer(context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                                         sizeof none, &none, &code));
    if (code == CL_SUCCESS)
        scrub.m_places =
            Memory(api, api.clCreateBuffer(context, CL_MEM_READ_WRITE,
                                           static_cast<std::size_t>(device.computeUnits) * sizeof(cl_ulong),
                                           nullptr, &code));
    if (device.isCpu)
        scrub.m_stacks = threadStacks();
    if (auto made = check(code, "prepare the gate's own kernel"); !made)
        return tl::unexpected(made.error());
    return scrub;
}

Status Scrub::run(cl_command_queue queue, std::uint32_t word, std::size_t localBytes)
{
    const Api &api = *m_device->api;
    const cl_mem arrived = m_arrived.get();
    const std::size_t bytes =
        std::min(m_device->localBytes, std::max(localBytes, sizeof word)) / sizeof word * sizeof word;
    const auto count = static_cast<cl_uint>(bytes / sizeof word);
    cl_int code = CL_SUCCESS;
    const cl_mem places = m_places.get();
    m_until += static_cast<cl_uint>(m_device->computeUnits);
    const std::array<std::pair<std::size_t, const void *>, 6> arguments{
        std::pair{sizeof arrived, static_cast<const void *>(&arrived)},
        {bytes, nullptr},
        {sizeof count, &count},
        {sizeof word, &word},
        {sizeof places, &places},
        {sizeof m_until, &m_until}};
    for (cl_uint i = 0; code == CL_SUCCESS && i < arguments.size(); ++i)
        code = api.clSetKernelArg(m_kernel.get(), i, arguments[i].first, arguments[i].second);
    const std::size_t one = 1;
    const auto groups = static_cast<std::size_t>(m_device->computeUnits);
    if (code == CL_SUCCESS)
        code =
            api.clEnqueueNDRangeKernel(queue, m_kernel.get(), 1, nullptr, &groups, &one, 0, nullptr, nullptr);
    return check(code, "overwrite local memory");
}

/// Of a thread that just overwrote the top 256 KiB of its stack and now waits for work, near its top, all that lies deeper is nobody's: the
/// system takes the pages back, and gives zeros for them.
Status Scrub::forgetDeepStacks(cl_command_queue queue)
{
    if (m_stacks.empty())
        return {};
    const Api &api = *m_device->api;
    std::vector<cl_ulong> places(static_cast<std::size_t>(m_device->computeUnits));
    const cl_int code =
        api.clEnqueueReadBuffer(queue, m_places.get(), CL_TRUE, 0, places.size() * sizeof(cl_ulong),
                                places.data(), 0, nullptr, nullptr);
    for (const cl_ulong place : places) {
        for (const auto &[low, high] : m_stacks) {
            if (place < low || place >= high || place == low)
                continue;
            const cl_ulong end = place / pageBytes * pageBytes;
            if (end > low)
                ::madvise(reinterpret_cast<void *>(low), end - low, MADV_DONTNEED);
        }
    }
    return check(code, "overwrite local memory");
}

} // namespace klineage::gate::opencl
