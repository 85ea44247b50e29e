// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/filehandle.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>

namespace klineage::files {

FileDescriptor openFile(const std::filesystem::path &path, int flags, unsigned mode)
{
    int descriptor = -1;
    do {
        descriptor = ::open(path.c_str(), flags | O_CLOEXEC, static_cast<mode_t>(mode));
    } while (descriptor < 0 && errno == EINTR);
    return FileDescriptor(descriptor);
}

tl::unexpected<Error> systemError(std::string_view what, const std::filesystem::path &path, int errorNumber)
{
    const bool missing = errorNumber == ENOENT || errorNumber == ENOTDIR;
    return fail(missing ? ErrorCode::NotFound : ErrorCode::Io,
                "Cannot " + std::string(what) + " '" + path.string()
                    + "': " + std::generic_category().message(errorNumber) + '.');
}

Status syncFolder(const std::filesystem::path &folder)
{
    const std::filesystem::path name = folder.empty() ? std::filesystem::path(".") : folder;
    const FileDescriptor handle = openFile(name, O_RDONLY | O_DIRECTORY);
    if (!handle)
        return systemError("open the folder", name, errno);
    // Some file systems (network, FUSE) have no fsync of folders and say EINVAL: nothing more can be done there.
    if (::fsync(handle.get()) != 0 && errno != EINVAL)
        return systemError("flush the folder", name, errno);
    return {};
}

} // namespace klineage::files
