// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/archives/formats/archivefolder.h"

#include "core/files/sha256.h"
#include "core/interop/archives/archivetext.h"
#include "core/interop/license.h"

#include <algorithm>

namespace klineage::interop {

namespace fs = std::filesystem;

ArchiveFolder::ArchiveFolder(fs::path root, int depth, std::stop_token stop)
    : FolderImport(std::move(root),
                   {.depth = depth,
                    .tooDeep = "Such a folder is no part of an archive.",
                    .listed = 5 * maxArchivedPrograms,
                    .tooMany = "More than 100000 files; what comes after them was not looked at."},
                   std::move(stop))
{}

std::optional<std::string> ArchiveFolder::take(const fs::path &file)
{
    if (m_bytes > maxArchiveBytes) {
        skip(shown(file), "The files before it have more than 512 MiB together.");
        return std::nullopt;
    }
    std::optional<std::string> text = read(file, shown(file), maxArchiveFileBytes);
    if (!text)
        return text;
    m_bytes += text->size();
    m_lines.insert(files::sha256Hex(*text) + "  " + shown(file) + '\n');
    return text;
}

void ArchiveFolder::close(Archive &archive, std::vector<ImportEntry> entries) const
{
    archive.skipped = std::move(entries);
    archive.license = firstLine(licenseIn(root()));
    std::string lines;
    for (const std::string &line : m_lines)
        lines += line;
    archive.sha256 = files::sha256Hex(lines);
    archive.digestOf = "the sorted lines of sha256sum over " + counted(m_lines.size(), "file");
}

} // namespace klineage::interop
