// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/opencl/handle.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace klineage::gate::opencl {

/// Bytes of a buffer for the host to read and write: where they lie, or mapped for as long as this lives. All that was enqueued before has to
/// have finished. A processor's own buffers are not mapped, since each command wakes a thread, which takes longer than most of what is done
/// with the bytes.
class HostView
{
public:
    explicit HostView(std::span<std::byte> bytes)
        : m_bytes(bytes)
    {}
    [[nodiscard]] static Result<HostView> mapped(const Api &api, cl_command_queue queue, cl_mem buffer,
                                                 std::size_t offset, std::size_t bytes, cl_map_flags access);
    HostView(HostView &&other) noexcept
        : m_api(std::exchange(other.m_api, nullptr))
        , m_queue(other.m_queue)
        , m_buffer(other.m_buffer)
        , m_bytes(other.m_bytes)
    {}
    HostView &operator=(HostView &&) = delete;
    ~HostView();

    [[nodiscard]] std::span<std::byte> bytes() const { return m_bytes; }

private:
    const Api *m_api = nullptr; ///< of what is mapped
    cl_command_queue m_queue = nullptr;
    cl_mem m_buffer = nullptr;
    std::span<std::byte> m_bytes;
};

/// Repeats the word's first bytes, one, two or four: as many as the size is a multiple of.
[[nodiscard]] std::size_t fillPiece(std::size_t bytes);
void fill(std::span<std::byte> bytes, std::uint32_t word);

} // namespace klineage::gate::opencl
