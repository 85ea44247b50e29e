// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/atomicfile.h"

#include "core/files/filehandle.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>

#include <fcntl.h>
#include <sys/stat.h>

namespace klineage::files {

namespace {

namespace fs = std::filesystem;

// A write takes far less; a temporary file this old belongs to a process that was killed.
constexpr std::chrono::minutes staleAge{10};

/// Removes what it was armed with, unless released: a failed write leaves nothing behind.
class TemporaryFile
{
public:
    explicit TemporaryFile(fs::path path)
        : m_path(std::move(path))
    {}
    ~TemporaryFile()
    {
        if (!m_path.empty())
            ::unlink(m_path.c_str());
    }
    TemporaryFile(const TemporaryFile &) = delete;
    TemporaryFile &operator=(const TemporaryFile &) = delete;

    [[nodiscard]] const fs::path &path() const { return m_path; }
    void release() { m_path.clear(); }

private:
    fs::path m_path;
};

std::string temporaryPrefix(const fs::path &target)
{
    return '.' + target.filename().string() + '.';
}

void removeStaleTemporaries(const fs::path &target)
{
    const std::string prefix = temporaryPrefix(target);
    const auto now = fs::file_time_type::clock::now();
    std::error_code ignored;
    for (fs::directory_iterator it(target.parent_path(), ignored), end; it != end; it.increment(ignored)) {
        const std::string name = it->path().filename().string();
        if (!name.starts_with(prefix) || !name.ends_with(".tmp"))
            continue;
        const auto written = it->last_write_time(ignored);
        if (!ignored && now - written > staleAge)
            fs::remove(it->path(), ignored);
    }
}

Status writeAll(const FileDescriptor &handle, std::string_view bytes, const fs::path &path)
{
    while (!bytes.empty()) {
        const ssize_t written = ::write(handle.get(), bytes.data(), bytes.size());
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return systemError("write", path, errno);
        bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return {};
}

} // namespace

Status writeFileAtomic(const fs::path &path, std::string_view bytes)
{
    std::error_code ignored;
    fs::path target = fs::is_symlink(path, ignored) ? fs::weakly_canonical(path, ignored) : path;
    if (target.empty() || !target.has_filename())
        return fail(ErrorCode::InvalidInput, "Cannot write '" + path.string() + "': the path names no file.");
    if (!target.has_parent_path())
        target = fs::path(".") / target;
    removeStaleTemporaries(target);

    static std::atomic<unsigned> counter{0};
    const std::string unique = std::to_string(::getpid()) + '-' + std::to_string(counter.fetch_add(1));
    TemporaryFile temporary(target.parent_path() / (temporaryPrefix(target) + unique + ".tmp"));
    // A recycled process id may meet the leftover of its namesake; nobody else uses that name.
    ::unlink(temporary.path().c_str());

    FileDescriptor handle = openFile(temporary.path(), O_WRONLY | O_CREAT | O_EXCL);
    if (!handle) {
        const int reason = errno;
        temporary.release();
        return systemError("create a file beside", target, reason);
    }
    struct stat previous {};
    if (::stat(target.c_str(), &previous) == 0 && ::fchmod(handle.get(), previous.st_mode & 07777) != 0)
        return systemError("set the permissions of", temporary.path(), errno);
    if (Status written = writeAll(handle, bytes, target); !written)
        return written;
    if (::fsync(handle.get()) != 0)
        return systemError("flush", target, errno);
    handle.close();
    if (::rename(temporary.path().c_str(), target.c_str()) != 0)
        return systemError("replace", target, errno);
    temporary.release();
    return syncFolder(target.parent_path());
}

Result<std::string> readFile(const fs::path &path, std::size_t maxBytes)
{
    // O_NONBLOCK: opening a named pipe must not hang; it is refused below. It changes nothing for regular files.
    const FileDescriptor handle = openFile(path, O_RDONLY | O_NONBLOCK);
    if (!handle)
        return systemError("read", path, errno);
    struct stat info {};
    if (::fstat(handle.get(), &info) != 0)
        return systemError("read", path, errno);
    if (!S_ISREG(info.st_mode))
        return fail(ErrorCode::InvalidInput,
                    "Cannot read '" + path.string() + "': it is not a regular file.");

    const auto tooLarge = [&] {
        return fail(ErrorCode::InvalidInput, "Cannot read '" + path.string()
                                                 + "': it is larger than the limit of "
                                                 + std::to_string(maxBytes) + " bytes.");
    };
    if (static_cast<std::uintmax_t>(info.st_size) > maxBytes)
        return tooLarge();
    std::string bytes(static_cast<std::size_t>(info.st_size) + 1, '\0');
    std::size_t used = 0;
    for (;;) {
        const ssize_t count = ::read(handle.get(), bytes.data() + used, bytes.size() - used);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return systemError("read", path, errno);
        if (count == 0)
            break;
        used += static_cast<std::size_t>(count);
        if (used > maxBytes)
            return tooLarge();
        if (used == bytes.size()) // it grew since fstat
            bytes.resize(bytes.size() * 2);
    }
    bytes.resize(used);
    return bytes;
}

} // namespace klineage::files
