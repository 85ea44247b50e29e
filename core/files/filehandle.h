// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"

#include <filesystem>
#include <string_view>

namespace klineage::files {

/// open(2) with O_CLOEXEC, retried when interrupted. The result is closed  on failure; errno
/// says why.
[[nodiscard]] FileDescriptor openFile(const std::filesystem::path &path, int flags, unsigned mode = 0666);

/// An Io (or NotFound) error that names what was tried, the file, and the system's reason for errorNumber.
[[nodiscard]] tl::unexpected<Error> systemError(std::string_view what, const std::filesystem::path &path,
                                                int errorNumber);

/// Flushes a folder's entries to the disk, so that a created or renamed file survives a power cut.
[[nodiscard]] Status syncFolder(const std::filesystem::path &folder);

} // namespace klineage::files
