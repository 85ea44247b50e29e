// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/hostview.h"

#include <algorithm>
#include <cstring>

namespace klineage::gate::opencl {

Result<HostView> HostView::mapped(const Api &api, cl_command_queue queue, cl_mem buffer, std::size_t offset,
                                  std::size_t bytes, cl_map_flags access)
{
    cl_int code = CL_SUCCESS;
    void *memory =
        api.clEnqueueMapBuffer(queue, buffer, CL_TRUE, access, offset, bytes, 0, nullptr, nullptr, &code);
    if (auto done = check(code, "look at a buffer"); !done)
        return tl::unexpected(done.error());
    HostView view({static_cast<std::byte *>(memory), bytes});
    view.m_api = &api;
    view.m_queue = queue;
    view.m_buffer = buffer;
    return view;
}

HostView::~HostView()
{
    if (!m_api)
        return;
    m_api->clEnqueueUnmapMemObject(m_queue, m_buffer, m_bytes.data(), 0, nullptr, nullptr);
    m_api->clFinish(m_queue);
}

std::size_t fillPiece(std::size_t bytes)
{
    return bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

void fill(std::span<std::byte> bytes, std::uint32_t word)
{
    const std::size_t first = std::min(fillPiece(bytes.size()), bytes.size());
    std::memcpy(bytes.data(), &word, first);
    // The first bytes again and again, as many as stay in the nearest cache.
    constexpr std::size_t most = std::size_t{16} << 10;
    for (std::size_t done = first; done > 0 && done < bytes.size();) {
        const std::size_t next = std::min({done, most, bytes.size() - done});
        std::memcpy(bytes.data() + done, bytes.data(), next);
        done += next;
    }
}

} // namespace klineage::gate::opencl
