// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/skills/cardlock.h"

#include "core/base/filelock.h"
#include "core/files/filehandle.h"

#include <cerrno>

#include <fcntl.h>

namespace klineage::skills {

using namespace std::chrono_literals;

Result<CardLock> CardLock::exclusive(const std::filesystem::path &cardDirectory)
{
    const std::filesystem::path path = cardDirectory / ".lock";
    FileDescriptor handle = files::openFile(path, O_RDWR | O_CREAT);
    if (!handle)
        return files::systemError("lock the card with", path, errno);
    const LockOutcome outcome = lockDescriptor(handle, LockKind::Exclusive, {10s, 1ms});
    if (outcome == LockOutcome::Refused)
        return files::systemError("lock the card with", path, errno);
    if (outcome != LockOutcome::Had)
        return fail(ErrorCode::Timeout,
                    "Cannot change the card in '" + cardDirectory.string()
                        + "': another program has kept it locked for ten seconds; try again.");
    return CardLock(std::move(handle));
}

CardLock CardLock::shared(const std::filesystem::path &cardDirectory)
{
    FileDescriptor handle = files::openFile(cardDirectory / ".lock", O_RDONLY);
    if (handle && lockDescriptor(handle, LockKind::Shared, {200ms, 1ms}) != LockOutcome::Had)
        handle.close();
    return CardLock(std::move(handle));
}

} // namespace klineage::skills
