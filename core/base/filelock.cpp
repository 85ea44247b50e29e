// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/base/filelock.h"

#include <cerrno>
#include <thread>

#include <sys/file.h>

namespace klineage {

namespace {

constexpr std::chrono::seconds tellEvery{10};

int operationOf(LockKind kind)
{
    return kind == LockKind::Shared ? LOCK_SH : LOCK_EX;
}

/// Interrupted calls are made again.
bool locks(const FileDescriptor &file, int operation)
{
    int result = 0;
    do {
        result = ::flock(file.get(), operation);
    } while (result != 0 && errno == EINTR);
    return result == 0;
}

} // namespace

LockOutcome lockDescriptor(const FileDescriptor &file, LockKind kind, const LockWait &wait)
{
    using Clock = std::chrono::steady_clock;
    const auto begin = Clock::now();
    auto tellNext = begin;
    while (!locks(file, operationOf(kind) | LOCK_NB)) {
        if (errno != EWOULDBLOCK)
            return LockOutcome::Refused;
        if (wait.stop.stop_requested())
            return LockOutcome::Stopped;
        const auto now = Clock::now();
        if (now - begin >= wait.patience)
            return LockOutcome::Busy;
        if (wait.waiting && now >= tellNext) {
            wait.waiting();
            tellNext = now + tellEvery;
        }
        std::this_thread::sleep_for(wait.pause);
    }
    return LockOutcome::Had;
}

LockOutcome lockDescriptorForever(const FileDescriptor &file, LockKind kind)
{
    return locks(file, operationOf(kind)) ? LockOutcome::Had : LockOutcome::Refused;
}

} // namespace klineage
