// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/archives/archive.h"
#include "core/interop/folderimport.h"

#include <set>

namespace klineage::interop {

/// What the archives that are folders share: files are read within limits, each and in sum, and what was read has a digest.
class ArchiveFolder : public FolderImport
{
protected:
    ArchiveFolder(std::filesystem::path root, int depth, std::stop_token stop);

    /// The text of a file; nothing when it cannot be used, which is said.
    [[nodiscard]] std::optional<std::string> take(const std::filesystem::path &file);
    /// Once, after walk(): what was skipped, and the digest of all that take() gave.
    void close(Archive &archive, std::vector<ImportEntry> entries) const;

private:
    std::set<std::string> m_lines; ///< "<sha-256>  <file>", as sha256sum prints them
    std::size_t m_bytes = 0;
};

} // namespace klineage::interop
