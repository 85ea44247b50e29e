// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/deviceturn.h"

#include "core/base/filelock.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace klineage::gate {

namespace {

/// A lock needs no more than reading, so that whoever came first may be another user.
FileDescriptor openLock(const std::filesystem::path &path)
{
    constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    FileDescriptor file(::open(path.c_str(), O_RDONLY | flags));
    if (!file)
        file = FileDescriptor(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | flags, 0644));
    if (!file) // somebody else just made it
        file = FileDescriptor(::open(path.c_str(), O_RDONLY | flags));
    struct stat info = {};
    if (file && (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)))
        file.close();
    return file;
}

} // namespace

std::filesystem::path DeviceTurn::meetingPlace()
{
    for (const char *folder : {"/tmp", "/var/tmp", "/dev/shm"}) {
        if (::access(folder, R_OK | W_OK | X_OK) == 0)
            return folder;
    }
    return {};
}

DeviceTurn::Outcome DeviceTurn::take(const std::filesystem::path &folder, const std::string &device,
                                     double patienceSeconds, const std::stop_token &stop,
                                     const std::function<void()> &waiting)
{
    release();
    // Who holds `next` is the one to whom the turn goes; without it, a gate with many trials would never let go for long enough.
    FileDescriptor next = openLock(folder / ("klineage-" + device + ".next"));
    FileDescriptor turn = openLock(folder / ("klineage-" + device + ".turn"));
    if (!next || !turn)
        return Outcome::NotHad;
    LockWait wait{std::chrono::duration<double>(patienceSeconds), std::chrono::milliseconds(10), stop,
                  waiting};
    const auto begin = std::chrono::steady_clock::now();
    for (const FileDescriptor *lock : {&next, &turn}) {
        const LockOutcome outcome = lockDescriptor(*lock, LockKind::Exclusive, wait);
        if (outcome != LockOutcome::Had)
            return outcome == LockOutcome::Stopped ? Outcome::Cancelled : Outcome::NotHad;
        wait.patience =
            std::chrono::duration<double>(patienceSeconds) - (std::chrono::steady_clock::now() - begin);
    }
    m_turn = std::move(turn);
    return Outcome::Had;
}

} // namespace klineage::gate
