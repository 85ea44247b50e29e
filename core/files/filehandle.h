// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <filesystem>
#include <string_view>
#include <utility>

#include <unistd.h>

namespace klineage::files {

/// Owns a POSIX file descriptor. Move-only; closing never fails loudly (flushing is done before, with fsync).
class FileHandle
{
public:
    FileHandle() = default;
    explicit FileHandle(int descriptor)
        : m_descriptor(descriptor)
    {}
    ~FileHandle() { reset(); }
    FileHandle(FileHandle &&other) noexcept
        : m_descriptor(std::exchange(other.m_descriptor, -1))
    {}
    FileHandle &operator=(FileHandle &&other) noexcept
    {
        if (this != &other) {
            reset();
            m_descriptor = std::exchange(other.m_descriptor, -1);
        }
        return *this;
    }

    [[nodiscard]] bool isOpen() const { return m_descriptor >= 0; }
    [[nodiscard]] int get() const { return m_descriptor; }

    void reset() noexcept
    {
        if (m_descriptor >= 0)
            ::close(m_descriptor);
        m_descriptor = -1;
    }

private:
    int m_descriptor = -1;
};

/// open(2) with O_CLOEXEC, retried when interrupted. The result is closed (isOpen() false) on failure; errno
/// says why.
[[nodiscard]] FileHandle openFile(const std::filesystem::path &path, int flags, unsigned mode = 0666);

/// An Io (or NotFound) error that names what was tried, the file, and the system's reason for errorNumber.
[[nodiscard]] tl::unexpected<Error> systemError(std::string_view what, const std::filesystem::path &path,
                                                int errorNumber);

/// Flushes a folder's entries to the disk, so that a created or renamed file survives a power cut.
[[nodiscard]] Status syncFolder(const std::filesystem::path &folder);

} // namespace klineage::files
