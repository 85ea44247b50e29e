// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/scrub.h"

#include <algorithm>
#include <array>

namespace klineage::gate::opencl {

namespace {

constexpr std::size_t mostLocalBytes = std::size_t{4}
                                       << 20; ///< some devices say as much as their main memory

// The private array is 256 KiB: more than work-items of a candidate are given at once on any device that runs them one after another.
const char *const source = R"cl(
__kernel void klineage_scrub(__global volatile int *arrived, __local volatile uint *cells, uint count, uint word)
{
    atomic_inc(arrived);
    for (int i = 0; i < 20000 && *arrived < (int)get_num_groups(0); ++i)
        ;
    for (uint i = 0; i < count; ++i)
        cells[i] = word;
    volatile uint stack[65536];
    for (uint i = 0; i < 65536; ++i)
        stack[i] = word;
    if (cells[word % count] != word || stack[word % 65536] != word)
        atomic_inc(arrived);
}
)cl";

} // namespace

Result<Scrub> Scrub::make(const Device &device, cl_context context)
{
    const Api &api = *device.api;
    Scrub scrub;
    scrub.m_device = &device;
    CompileOutput output;
    auto program = buildProgram(device, context, source, {}, output);
    if (!program)
        return fail(ErrorCode::Internal, "Cannot compile the gate's own kernel: " + program.error().message,
                    output.log);
    scrub.m_program = std::move(*program);
    cl_int code = CL_SUCCESS;
    scrub.m_kernel = Kernel(api, api.clCreateKernel(scrub.m_program.get(), "klineage_scrub", &code));
    if (code == CL_SUCCESS)
        scrub.m_arrived =
            Memory(api, api.clCreateBuffer(context, CL_MEM_READ_WRITE, sizeof(cl_int), nullptr, &code));
    if (auto made = check(code, "prepare the gate's own kernel"); !made)
        return tl::unexpected(made.error());
    return scrub;
}

Status Scrub::run(cl_command_queue queue, std::uint32_t word)
{
    const Api &api = *m_device->api;
    const cl_mem arrived = m_arrived.get();
    const std::size_t bytes = std::min(m_device->localBytes, mostLocalBytes) / sizeof word * sizeof word;
    const auto count = static_cast<cl_uint>(bytes / sizeof word);
    const cl_int none = 0;
    cl_int code =
        api.clEnqueueFillBuffer(queue, arrived, &none, sizeof none, 0, sizeof none, 0, nullptr, nullptr);
    const std::array<std::pair<std::size_t, const void *>, 4> arguments{
        std::pair{sizeof arrived, static_cast<const void *>(&arrived)},
        {bytes, nullptr},
        {sizeof count, &count},
        {sizeof word, &word}};
    for (cl_uint i = 0; code == CL_SUCCESS && i < arguments.size(); ++i)
        code = api.clSetKernelArg(m_kernel.get(), i, arguments[i].first, arguments[i].second);
    const std::size_t one = 1;
    const auto groups = static_cast<std::size_t>(m_device->computeUnits);
    if (code == CL_SUCCESS)
        code =
            api.clEnqueueNDRangeKernel(queue, m_kernel.get(), 1, nullptr, &groups, &one, 0, nullptr, nullptr);
    return check(code, "overwrite local memory");
}

} // namespace klineage::gate::opencl
