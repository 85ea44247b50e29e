// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/opencl/handle.h"

#include <cstddef>
#include <span>
#include <utility>

namespace klineage::gate::opencl {

/// Whole pages of their own, between two that nobody may touch. What was asked for ends where they end.
class GuardedPages
{
public:
    GuardedPages() = default;
    [[nodiscard]] static Result<GuardedPages> make(std::size_t bytes);
    GuardedPages(GuardedPages &&other) noexcept
        : m_pages(std::exchange(other.m_pages, {}))
        , m_bytes(other.m_bytes)
    {}
    GuardedPages &operator=(GuardedPages &&other) noexcept
    {
        std::swap(m_pages, other.m_pages);
        std::swap(m_bytes, other.m_bytes);
        return *this;
    }
    ~GuardedPages();

    /// Aligned to 256 bytes, rounded up to such a multiple.
    [[nodiscard]] std::span<std::byte> room() const { return m_pages.last(m_bytes); }
    /// What is left of the first page.
    [[nodiscard]] std::span<std::byte> slack() const { return m_pages.first(m_pages.size() - m_bytes); }
    /// Both, whole pages.
    [[nodiscard]] std::span<std::byte> pages() const { return m_pages; }

private:
    std::span<std::byte> m_pages; ///< without the two beside them
    std::size_t m_bytes = 0;
};

/// Whether anybody can write to whole pages: a process that tries where nobody can dies of it.
[[nodiscard]] Status letWrite(std::span<std::byte> pages, bool allowed);

/// A buffer, and on a processor the pages that it lies in.
class DeviceMemory
{
public:
    DeviceMemory() = default;
    DeviceMemory(GuardedPages pages, Memory buffer)
        : m_pages(std::move(pages))
        , m_buffer(std::move(buffer))
    {}
    [[nodiscard]] cl_mem get() const { return m_buffer.get(); }
    [[nodiscard]] const GuardedPages &pages() const { return m_pages; }

private:
    GuardedPages m_pages; // outlives the buffer
    Memory m_buffer;
};

} // namespace klineage::gate::opencl
