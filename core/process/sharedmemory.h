// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"

#include <cstddef>
#include <span>

namespace klineage::process {

/// Anonymous memory (memfd) that two processes map; the descriptor is passed to the child when it starts.
/// The owner may grow it; nobody can shrink it (sealed), so a hostile peer cannot make the owner's mapping fault.
/// The peer can change the bytes at any time: copy them out before judging them.
class SharedMemory
{
public:
    SharedMemory() = default;
    [[nodiscard]] static Result<SharedMemory> create(std::size_t bytes);
    /// Takes over a descriptor inherited from the owner; nothing is mapped until ensure().
    [[nodiscard]] static SharedMemory adopt(FileDescriptor fd);

    SharedMemory(SharedMemory &&other) noexcept;
    SharedMemory &operator=(SharedMemory &&other) noexcept;
    ~SharedMemory();

    /// Maps at least that many bytes; the owner grows the file first. Earlier spans become invalid when it has to remap.
    [[nodiscard]] Status ensure(std::size_t bytes);
    [[nodiscard]] std::span<std::byte> bytes() const { return {m_data, m_mapped}; }
    [[nodiscard]] int fd() const { return m_fd.get(); }

private:
    void unmap() noexcept;
    FileDescriptor m_fd;
    std::byte *m_data = nullptr;
    std::size_t m_mapped = 0;
    bool m_owner = false;
};

} // namespace klineage::process
