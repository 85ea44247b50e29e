// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/sharedmemory.h"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

namespace klineage::process {

namespace {

constexpr std::size_t granuleBytes = std::size_t{1} << 20;

Status systemFailure(const char *what)
{
    return fail(ErrorCode::Io, std::string("Cannot ") + what + ": " + std::strerror(errno) + ".",
                "The machine may be short of memory.");
}

} // namespace

Result<SharedMemory> SharedMemory::create(std::size_t bytes)
{
    SharedMemory memory;
    memory.m_owner = true;
    memory.m_fd = FileDescriptor(::memfd_create("klineage", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory.m_fd)
        return tl::unexpected(systemFailure("create shared memory").error());
    if (::fcntl(memory.m_fd.get(), F_ADD_SEALS, F_SEAL_SHRINK) != 0)
        return tl::unexpected(systemFailure("seal shared memory").error());
    if (auto mapped = memory.ensure(bytes); !mapped)
        return tl::unexpected(mapped.error());
    return memory;
}

SharedMemory SharedMemory::adopt(FileDescriptor fd)
{
    SharedMemory memory;
    memory.m_fd = std::move(fd);
    return memory;
}

SharedMemory::SharedMemory(SharedMemory &&other) noexcept
    : m_fd(std::move(other.m_fd))
    , m_data(std::exchange(other.m_data, nullptr))
    , m_mapped(std::exchange(other.m_mapped, 0))
    , m_owner(other.m_owner)
{}

SharedMemory &SharedMemory::operator=(SharedMemory &&other) noexcept
{
    if (this != &other) {
        unmap();
        m_fd = std::move(other.m_fd);
        m_data = std::exchange(other.m_data, nullptr);
        m_mapped = std::exchange(other.m_mapped, 0);
        m_owner = other.m_owner;
    }
    return *this;
}

SharedMemory::~SharedMemory()
{
    unmap();
}

Status SharedMemory::ensure(std::size_t bytes)
{
    if (bytes <= m_mapped)
        return {};
    std::size_t wanted = (bytes + granuleBytes - 1) / granuleBytes * granuleBytes;
    const off_t end = ::lseek(m_fd.get(), 0, SEEK_END); // which a sealed process may, unlike fstat
    if (end < 0)
        return systemFailure("inspect shared memory");
    const auto present = static_cast<std::size_t>(end);
    if (m_owner && present < wanted && ::ftruncate(m_fd.get(), static_cast<off_t>(wanted)) != 0)
        return systemFailure("grow shared memory");
    if (!m_owner && present < bytes)
        return fail(ErrorCode::Protocol,
                    "Cannot map shared memory: the owner has not grown it to the announced size.");
    if (!m_owner)
        wanted = present;
    if (m_data) { // moved with what is known of its pages, which finding them again would take long
        void *const moved = ::mremap(m_data, m_mapped, wanted, MREMAP_MAYMOVE);
        if (moved != MAP_FAILED) {
            m_data = static_cast<std::byte *>(moved);
            m_mapped = wanted;
            return {};
        }
    }
    unmap();
    void *data = ::mmap(nullptr, wanted, PROT_READ | PROT_WRITE, MAP_SHARED, m_fd.get(), 0);
    if (data == MAP_FAILED)
        return systemFailure("map shared memory");
    m_data = static_cast<std::byte *>(data);
    m_mapped = wanted;
    ::madvise(m_data, m_mapped, MADV_HUGEPAGE); // where the system has such for shared memory
    return {};
}

void SharedMemory::unmap() noexcept
{
    if (m_data)
        ::munmap(m_data, m_mapped);
    m_data = nullptr;
    m_mapped = 0;
}

} // namespace klineage::process
