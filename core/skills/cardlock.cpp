// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/cardlock.h"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

namespace klineage::skills {

namespace {

using namespace std::chrono_literals;

/// True when the lock was had within the time.
bool lockWithin(const files::FileHandle &handle, int operation, std::chrono::milliseconds patience)
{
    const auto deadline = std::chrono::steady_clock::now() + patience;
    while (::flock(handle.get(), operation | LOCK_NB) != 0) {
        if (std::chrono::steady_clock::now() >= deadline)
            return false;
        std::this_thread::sleep_for(1ms);
    }
    return true;
}

} // namespace

Result<CardLock> CardLock::exclusive(const std::filesystem::path &cardDirectory)
{
    const std::filesystem::path path = cardDirectory / ".lock";
    files::FileHandle handle = files::openFile(path, O_RDWR | O_CREAT);
    if (!handle.isOpen())
        return files::systemError("lock the card with", path, errno);
    if (!lockWithin(handle, LOCK_EX, 10s))
        return fail(ErrorCode::Timeout,
                    "Cannot change the card in '" + cardDirectory.string()
                        + "': another program has kept it locked for ten seconds; try again.");
    return CardLock(std::move(handle));
}

CardLock CardLock::shared(const std::filesystem::path &cardDirectory)
{
    files::FileHandle handle = files::openFile(cardDirectory / ".lock", O_RDONLY);
    if (handle.isOpen() && !lockWithin(handle, LOCK_SH, 200ms))
        handle.reset();
    return CardLock(std::move(handle));
}

} // namespace klineage::skills
