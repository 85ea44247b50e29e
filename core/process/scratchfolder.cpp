// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/process/scratchfolder.h"

#include "core/base/filelock.h"

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <mutex>
#include <string>
#include <sys/stat.h>
#include <sys/statvfs.h>

namespace klineage::process {

namespace {

namespace fs = std::filesystem;

constexpr const char *prefix = "klineage-scratch-";
constexpr std::chrono::minutes youngest{1}; // its maker may not have locked it yet

FileDescriptor locked(const fs::path &folder)
{
    FileDescriptor fd(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (fd && lockDescriptor(fd, LockKind::Exclusive) != LockOutcome::Had)
        fd.close();
    return fd;
}

void removeLeftovers(const fs::path &base)
{
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(base, ignored)) {
        struct stat info = {};
        if (entry.path().filename().string().rfind(prefix, 0) != 0
            || ::lstat(entry.path().c_str(), &info) != 0 || info.st_uid != ::geteuid()
            || entry.last_write_time(ignored) + youngest > fs::file_time_type::clock::now())
            continue;
        if (const FileDescriptor lock = locked(entry.path()); lock)
            fs::remove_all(entry.path(), ignored);
    }
}

/// Folders that the owner may not enter cannot be emptied.
void openUp(const fs::path &folder)
{
    std::error_code ignored;
    fs::permissions(folder, fs::perms::owner_all, ignored);
    for (const auto &entry : fs::directory_iterator(folder, ignored)) {
        if (entry.symlink_status(ignored).type() == fs::file_type::directory)
            openUp(entry.path());
    }
}

} // namespace

Result<ScratchFolder> ScratchFolder::create(const fs::path &elsewhere)
{
    std::error_code problem;
    fs::path base = fs::temp_directory_path(problem);
    struct statvfs mounted = {};
    if (!elsewhere.empty()
        && (problem || (::statvfs(base.c_str(), &mounted) == 0 && (mounted.f_flag & ST_NOEXEC) != 0))) {
        base = elsewhere;
        problem.clear();
    }
    static std::once_flag swept;
    if (!problem) {
        std::call_once(swept, [&] {
            try {
                removeLeftovers(base);
            } catch (const std::exception &) { // it is housekeeping
            }
        });
    }
    std::string name = (base / (prefix + std::string("XXXXXX"))).string();
    if (problem || !::mkdtemp(name.data()))
        return fail(
            ErrorCode::Io,
            "Cannot make a folder among the temporary files"
                + (problem ? ": " + problem.message() : " " + base.string() + ": " + std::strerror(errno))
                + ".",
            "Set TMPDIR to a folder that can be written to.");
    ScratchFolder folder;
    folder.m_path = fs::canonical(name, problem);
    if (problem)
        folder.m_path = name;
    folder.m_lock = locked(folder.m_path);
    return folder;
}

ScratchFolder::ScratchFolder(ScratchFolder &&other) noexcept
    : m_path(std::exchange(other.m_path, {}))
    , m_lock(std::move(other.m_lock))
{}

ScratchFolder &ScratchFolder::operator=(ScratchFolder &&other) noexcept
{
    if (this != &other) {
        remove();
        m_path = std::exchange(other.m_path, {});
        m_lock = std::move(other.m_lock);
    }
    return *this;
}

ScratchFolder::~ScratchFolder()
{
    remove();
}

void ScratchFolder::remove() noexcept
{
    if (m_path.empty())
        return;
    try {
        std::error_code problem;
        fs::remove_all(m_path, problem);
        if (problem) {
            openUp(m_path);
            fs::remove_all(m_path, problem);
        }
    } catch (const std::exception &) { // the next process that makes a folder tries again
    }
    m_path.clear();
}

} // namespace klineage::process
