// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/deviceturn.h"

#include <chrono>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

namespace klineage::gate {

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

constexpr auto turnPause = 10ms;
constexpr auto tellEvery = 10s;

/// A lock needs no more than reading, so that whoever came first may be another user.
process::FileDescriptor openLock(const std::filesystem::path &path)
{
    constexpr int flags = O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
    process::FileDescriptor file(::open(path.c_str(), O_RDONLY | flags));
    if (!file)
        file = process::FileDescriptor(::open(path.c_str(), O_RDONLY | O_CREAT | O_EXCL | flags, 0644));
    if (!file) // somebody else just made it
        file = process::FileDescriptor(::open(path.c_str(), O_RDONLY | flags));
    struct stat info = {};
    if (file && (::fstat(file.get(), &info) != 0 || !S_ISREG(info.st_mode)))
        file.close();
    return file;
}

} // namespace

DeviceTurn::Outcome DeviceTurn::take(const std::filesystem::path &folder, const std::string &device,
                                     double patienceSeconds, const std::stop_token &stop,
                                     const std::function<void()> &waiting)
{
    release();
    // Who holds `next` is the one to whom the turn goes; without it, a gate with many trials would never let go for long enough.
    process::FileDescriptor next = openLock(folder / ("klineage-" + device + ".next"));
    process::FileDescriptor turn = openLock(folder / ("klineage-" + device + ".turn"));
    if (!next || !turn)
        return Outcome::NotHad;
    const auto end =
        Clock::now()
        + std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(patienceSeconds));
    auto tellNext = Clock::now();
    for (const process::FileDescriptor *lock : {&next, &turn}) {
        while (::flock(lock->get(), LOCK_EX | LOCK_NB) != 0) {
            if (stop.stop_requested())
                return Outcome::Cancelled;
            if (Clock::now() >= end)
                return Outcome::NotHad;
            if (waiting && Clock::now() >= tellNext) {
                waiting();
                tellNext = Clock::now() + tellEvery;
            }
            std::this_thread::sleep_for(turnPause);
        }
    }
    m_turn = std::move(turn);
    return Outcome::Had;
}

} // namespace klineage::gate
