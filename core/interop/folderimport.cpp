// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/folderimport.h"

#include "core/files/atomicfile.h"
#include "core/files/utf8text.h"

#include <algorithm>
#include <utility>

namespace klineage::interop {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t maxImportEntries = 20'000;
constexpr const char *isLink = "It is a link, which is not followed.";

} // namespace

FolderImport::FolderImport(fs::path root, const Limits &limits, std::stop_token stop)
    : m_root(std::move(root))
    , m_limits(limits)
    , m_stop(std::move(stop))
{}

std::vector<ImportEntry> FolderImport::walk()
{
    std::error_code ignored;
    if (fs::is_directory(m_root, ignored))
        walkFolder(m_root, 0);
    else
        takeFile(m_root);
    return std::move(m_entries);
}

bool FolderImport::takeWhole(const fs::path &, const std::vector<fs::directory_entry> &)
{
    return false;
}

void FolderImport::foundNothing(const fs::path &) {}

std::string FolderImport::shown(const fs::path &path) const
{
    const std::string text = path.lexically_relative(m_root).string();
    return text.empty() || text == "." ? path.filename().string() : text;
}

void FolderImport::skip(const std::string &source, std::string reason)
{
    m_entries.push_back({source, {}, std::move(reason), false, {}});
}

bool FolderImport::isFull()
{
    if (m_listed <= m_limits.listed && m_entries.size() < maxImportEntries)
        return false;
    if (!std::exchange(m_saidFull, true))
        skip(shown(m_root), m_limits.tooMany);
    return true;
}

std::optional<std::string> FolderImport::read(const fs::path &file, const std::string &source,
                                              std::size_t mostBytes)
{
    std::error_code ignored;
    if (fs::is_symlink(file, ignored)) {
        skip(source, isLink);
        return std::nullopt;
    }
    Result<std::string> text = files::readFile(file, mostBytes);
    if (!text || !files::isUtf8Text(*text)) {
        skip(source, text ? "It is no UTF-8 text." : text.error().message);
        return std::nullopt;
    }
    return std::move(*text);
}

void FolderImport::walkFolder(const fs::path &folder, int depth)
{
    std::vector<fs::directory_entry> entries;
    std::error_code problem;
    for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
        ++m_listed;
        if (isFull())
            return;
        entries.push_back(*it);
    }
    if (problem)
        return skip(shown(folder), "It cannot be listed: " + problem.message() + '.');
    std::sort(entries.begin(), entries.end());
    if (takeWhole(folder, entries))
        return;
    const std::size_t before = m_entries.size();
    for (const fs::directory_entry &entry : entries) {
        std::error_code ignored;
        if (m_stop.stop_requested() || entry.path().filename().string().starts_with('.'))
            continue;
        if (entry.is_symlink(ignored))
            skip(shown(entry.path()), isLink);
        else if (entry.is_directory(ignored) && depth < m_limits.depth)
            walkFolder(entry.path(), depth + 1);
        else if (entry.is_directory(ignored))
            skip(shown(entry.path()), m_limits.tooDeep);
        else
            takeFile(entry.path());
    }
    if (m_entries.size() == before)
        foundNothing(folder);
}

} // namespace klineage::interop
