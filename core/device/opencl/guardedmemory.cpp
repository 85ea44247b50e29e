// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/guardedmemory.h"

#include "core/base/random.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace klineage::gate::opencl {

namespace {

constexpr std::size_t alignment = 256;
/// Where buffers would like to lie: anywhere there, so that their distances say nothing of how many there are.
constexpr std::uintptr_t lowest = std::uintptr_t{1} << 44;
constexpr std::uintptr_t places = std::uintptr_t{1} << 24; ///< pages

std::size_t systemPageBytes()
{
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::size_t roundUp(std::size_t bytes, std::size_t multiple)
{
    return (bytes + multiple - 1) / multiple * multiple;
}

} // namespace

Result<GuardedPages> GuardedPages::make(std::size_t bytes)
{
    const std::size_t page = systemPageBytes();
    GuardedPages made;
    made.m_bytes = roundUp(std::max<std::size_t>(bytes, 1), alignment);
    const std::size_t inner = roundUp(made.m_bytes, page);
    const std::uintptr_t wished = lowest + entropy() % places * page;
    void *const all = ::mmap(reinterpret_cast<void *>(wished), inner + 2 * page, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    const bool mapped = all != MAP_FAILED;
    if (mapped) {
        made.m_pages = {static_cast<std::byte *>(all) + page, inner};
        if (::mprotect(made.m_pages.data(), inner, PROT_READ | PROT_WRITE) == 0)
            return made;
    }
    return fail(ErrorCode::Internal,
                "Cannot allocate " + std::to_string(bytes) + " bytes: " + std::strerror(errno) + ".");
}

Status letWrite(std::span<std::byte> pages, bool allowed)
{
    const int access = allowed ? PROT_READ | PROT_WRITE : PROT_READ;
    if (::mprotect(pages.data(), pages.size(), access) == 0)
        return {};
    return fail(ErrorCode::Internal, std::string("Cannot protect the inputs: ") + std::strerror(errno) + ".");
}

GuardedPages::~GuardedPages()
{
    if (!m_pages.empty())
        ::munmap(m_pages.data() - systemPageBytes(), m_pages.size() + 2 * systemPageBytes());
}

} // namespace klineage::gate::opencl
