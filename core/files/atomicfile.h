// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

namespace klineage::files {

/// Replaces (or creates) a file so that a reader, or a kill at any instant, sees the old bytes or the new
/// ones, never a mix: temporary file in the same folder, fsync, rename, fsync of the folder. Keeps the
/// permissions of the file it replaces and writes through a symbolic link. The folder must exist. Temporary
/// files that earlier kills left for this path are removed.
[[nodiscard]] Status writeFileAtomic(const std::filesystem::path &path, std::string_view bytes);

/// The whole of a regular file. Errors: NotFound; Io; InvalidInput when it is larger than maxBytes or no
/// regular file.
[[nodiscard]] Result<std::string> readFile(const std::filesystem::path &path, std::size_t maxBytes);

} // namespace klineage::files
