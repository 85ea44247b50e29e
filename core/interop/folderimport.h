// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/interop/importentry.h"

#include <filesystem>
#include <optional>
#include <stop_token>

namespace klineage::interop {

/// Looks at one file, or at all that lies below a folder, sorted by path, and collects what became of it. Links are not followed, and
/// names that begin with '.' are passed over. It stops at 20000 entries. One thread.
class FolderImport
{
public:
    struct Limits {
        int depth;           ///< of folders below the root
        const char *tooDeep; ///< why a folder below those is skipped
        std::size_t listed;  ///< files and folders; the folder in which one more is found is not looked at
        const char *tooMany; ///< what is said of that, once
    };

    virtual ~FolderImport() = default;
    FolderImport(const FolderImport &) = delete;
    FolderImport &operator=(const FolderImport &) = delete;

protected:
    FolderImport(std::filesystem::path root, const Limits &limits, std::stop_token stop = {});

    /// All of it, once. After a stop nothing more is looked at.
    std::vector<ImportEntry> walk();

    /// The root, or a file that was found below it.
    virtual void takeFile(const std::filesystem::path &file) = 0;
    /// Whether the folder is one thing and was taken as that, so that its entries are not looked at.
    virtual bool takeWhole(const std::filesystem::path &folder,
                           const std::vector<std::filesystem::directory_entry> &entries);
    /// The folder was looked through, and there is no entry of anything in it.
    virtual void foundNothing(const std::filesystem::path &folder);

    [[nodiscard]] const std::filesystem::path &root() const { return m_root; }
    [[nodiscard]] const std::stop_token &stop() const { return m_stop; }
    /// A path as seen from the root.
    [[nodiscard]] std::string shown(const std::filesystem::path &path) const;
    void add(ImportEntry entry) { m_entries.push_back(std::move(entry)); }
    void skip(const std::string &source, std::string reason);
    /// Whether no more is to be looked at or added; says so the first time.
    [[nodiscard]] bool isFull();
    /// The text of a file that is no link; nothing when it cannot be used, and then `source` is skipped.
    [[nodiscard]] std::optional<std::string> read(const std::filesystem::path &file,
                                                  const std::string &source, std::size_t mostBytes);

private:
    void walkFolder(const std::filesystem::path &folder, int depth);

    const std::filesystem::path m_root;
    const Limits m_limits;
    const std::stop_token m_stop;
    std::vector<ImportEntry> m_entries;
    std::size_t m_listed = 0;
    bool m_saidFull = false;
};

} // namespace klineage::interop
