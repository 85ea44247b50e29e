// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/filedescriptor.h"
#include "core/base/result.h"

#include <filesystem>

namespace klineage::process {

/// A new, private folder among the temporary files; removed, with all that is in it, on destruction. What killed processes left
/// is removed by the next one that makes such a folder.
class ScratchFolder
{
public:
    ScratchFolder() = default; ///< none
    /// elsewhere: an existing folder to make it in where nothing may be executed from among the temporary files; may be empty.
    [[nodiscard]] static Result<ScratchFolder> create(const std::filesystem::path &elsewhere = {});
    ScratchFolder(ScratchFolder &&other) noexcept;
    ScratchFolder &operator=(ScratchFolder &&other) noexcept;
    ~ScratchFolder();

    /// Absolute; empty when there is none.
    [[nodiscard]] const std::filesystem::path &path() const { return m_path; }

private:
    void remove() noexcept;

    std::filesystem::path m_path;
    FileDescriptor m_lock; ///< held while it is in use
};

} // namespace klineage::process
