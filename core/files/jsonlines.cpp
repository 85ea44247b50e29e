// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/jsonlines.h"

#include "core/base/filelock.h"
#include "core/files/atomicfile.h"
#include "core/files/filehandle.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <chrono>

#include <fcntl.h>
#include <sys/stat.h>

namespace klineage::files {

namespace {

namespace fs = std::filesystem;

bool isBlank(std::string_view text)
{
    return text.find_first_not_of(" \t\r") == std::string_view::npos;
}

/// A record that only lacks its newline (a person's editor, a kill between two bytes) is whole and is kept.
bool isWholeRecord(std::string_view tail)
{
    return nlohmann::json::accept(tail.begin(), tail.end());
}

/// One write(2); a short one (full disk) is undone, so that the file never keeps half a record of ours.
Status writeOnce(const FileDescriptor &handle, std::string_view bytes, off_t sizeBefore, const fs::path &path)
{
    ssize_t written = 0;
    do {
        written = ::write(handle.get(), bytes.data(), bytes.size());
    } while (written < 0 && errno == EINTR);
    if (written == static_cast<ssize_t>(bytes.size()))
        return {};
    const int reason = written < 0 ? errno : ENOSPC;
    if (written > 0 && ::ftruncate(handle.get(), sizeBefore) != 0)
        return systemError("undo a partial write to", path, errno);
    return systemError("append to", path, reason);
}

Result<std::string> readAt(const FileDescriptor &handle, off_t offset, std::size_t length,
                           const fs::path &path)
{
    std::string bytes(length, '\0');
    std::size_t used = 0;
    while (used < length) {
        const ssize_t count =
            ::pread(handle.get(), bytes.data() + used, length - used, offset + static_cast<off_t>(used));
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0)
            return systemError("read", path, errno);
        if (count == 0)
            break;
        used += static_cast<std::size_t>(count);
    }
    bytes.resize(used);
    return bytes;
}

/// Everything after the last newline of a file of this size.
Result<std::string> readTail(const FileDescriptor &handle, off_t size, const fs::path &path)
{
    constexpr off_t blockBytes = 64 * 1024;
    std::string tail;
    off_t begin = size;
    while (begin > 0) {
        const off_t length = std::min(begin, blockBytes);
        begin -= length;
        Result<std::string> block = readAt(handle, begin, static_cast<std::size_t>(length), path);
        if (!block)
            return block;
        const std::size_t newline = block->rfind('\n');
        if (newline != std::string::npos)
            return block->substr(newline + 1) + tail;
        tail.insert(0, *block);
        if (tail.size() > maxLineBytes)
            return fail(ErrorCode::InvalidInput,
                        "Cannot append to '" + path.string() + "': its last line is longer than "
                            + std::to_string(maxLineBytes) + " bytes; is it a .jsonl file?");
    }
    return tail;
}

Status setAside(const fs::path &path, std::string_view tornText)
{
    const fs::path aside = path.string() + ".torn";
    const FileDescriptor handle = openFile(aside, O_WRONLY | O_CREAT | O_APPEND);
    if (!handle)
        return systemError("create", aside, errno);
    struct stat info {};
    if (::fstat(handle.get(), &info) != 0)
        return systemError("read", aside, errno);
    if (Status written = writeOnce(handle, std::string(tornText) + '\n', info.st_size, aside); !written)
        return written;
    if (::fsync(handle.get()) != 0)
        return systemError("flush", aside, errno);
    return {};
}

/// Leaves the file empty or ended by a newline; returns its size then. The lock is held.
Result<off_t> repairTail(const FileDescriptor &handle, const fs::path &path)
{
    struct stat info {};
    if (::fstat(handle.get(), &info) != 0)
        return systemError("read", path, errno);
    const Result<std::string> tail = readTail(handle, info.st_size, path);
    if (!tail)
        return tl::unexpected(tail.error());
    if (tail->empty())
        return info.st_size;
    if (isWholeRecord(*tail)) {
        if (Status written = writeOnce(handle, "\n", info.st_size, path); !written)
            return tl::unexpected(written.error());
        return info.st_size + 1;
    }
    // Copied before it is cut off: a kill in between leaves it twice, never nowhere.
    if (Status kept = setAside(path, *tail); !kept)
        return tl::unexpected(kept.error());
    const off_t size = info.st_size - static_cast<off_t>(tail->size());
    if (::ftruncate(handle.get(), size) != 0)
        return systemError("cut the torn last line off", path, errno);
    return size;
}

} // namespace

Result<Lines> splitLines(std::string_view text, const std::string &where)
{
    Lines result;
    int number = 0;
    while (!text.empty()) {
        ++number;
        const std::size_t newline = text.find('\n');
        const std::string_view line = text.substr(0, newline);
        if (line.size() > maxLineBytes)
            return fail(ErrorCode::InvalidInput, where + ':' + std::to_string(number)
                                                     + ":1: the line is longer than "
                                                     + std::to_string(maxLineBytes) + " bytes.");
        const bool torn = newline == std::string_view::npos && !isBlank(line) && !isWholeRecord(line);
        if (torn)
            result.tornTail = Line{number, std::string(line)};
        else if (!isBlank(line))
            result.lines.push_back({number, std::string(line)});
        text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    }
    return result;
}

Result<Lines> readLines(const fs::path &path)
{
    // A writer holds its lock for one write and one fsync. If somebody holds it longer (or the file system
    // has no locks), reading without it is still safe: at worst the record in flight reads as a torn tail.
    const FileDescriptor handle = openFile(path, O_RDONLY | O_NONBLOCK);
    if (!handle)
        return systemError("read", path, errno);
    static_cast<void>(lockDescriptor(handle, LockKind::Shared, {std::chrono::milliseconds(500)}));
    const Result<std::string> text = readFile(path, maxLinesFileBytes);
    if (!text)
        return tl::unexpected(text.error());
    return splitLines(*text, path.string());
}

Status appendLine(const fs::path &path, std::string_view line)
{
    if (line.find('\n') != std::string_view::npos || isBlank(line))
        return fail(ErrorCode::InvalidInput,
                    "Cannot append to '" + path.string() + "': a record is one line that is not blank.");
    if (line.size() > maxLineBytes)
        return fail(ErrorCode::InvalidInput, "Cannot append to '" + path.string()
                                                 + "': the record is longer than "
                                                 + std::to_string(maxLineBytes) + " bytes.");
    std::error_code ignored;
    const bool existed = fs::exists(path, ignored);
    const FileDescriptor handle = openFile(path, O_RDWR | O_CREAT | O_APPEND);
    if (!handle)
        return systemError("open for appending", path, errno);
    if (lockDescriptorForever(handle, LockKind::Exclusive) != LockOutcome::Had)
        return systemError("lock", path, errno);
    const Result<off_t> size = repairTail(handle, path);
    if (!size)
        return tl::unexpected(size.error());
    if (static_cast<std::size_t>(*size) + line.size() + 1 > maxLinesFileBytes)
        return fail(ErrorCode::Io, "Cannot append to '" + path.string() + "': the file would be larger than "
                                       + std::to_string(maxLinesFileBytes) + " bytes.");
    if (Status written = writeOnce(handle, std::string(line) + '\n', *size, path); !written)
        return written;
    if (::fsync(handle.get()) != 0)
        return systemError("flush", path, errno);
    return existed ? Status() : syncFolder(path.parent_path());
}

} // namespace klineage::files
