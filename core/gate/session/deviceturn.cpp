// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/deviceturn.h"

#include "core/base/filelock.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdlib>
#include <string_view>
#include <vector>

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

/// The entries of a list such as "0,3" in an environment variable.
std::vector<std::string> listed(const char *variable)
{
    std::vector<std::string> entries;
    const char *value = std::getenv(variable);
    for (std::string_view rest = value ? value : ""; !rest.empty();) {
        const std::size_t comma = std::min(rest.find(','), rest.size());
        entries.emplace_back(rest.substr(0, comma));
        rest.remove_prefix(std::min(comma + 1, rest.size()));
    }
    return entries;
}

} // namespace

std::string DeviceTurn::nameOf(kernel::DeviceKind kind)
{
    const std::string word = kernel::traitsOf(kind).word;
    if (kind != kernel::DeviceKind::Cuda)
        return word;
    const std::vector<std::string> visible = listed("CUDA_VISIBLE_DEVICES");
    const std::vector<std::string> given = listed("SLURM_STEP_GPUS");
    std::string device = visible.empty() ? "0" : visible.front();
    // Where Slurm confines a step to its GPUs, CUDA counts those alone.
    std::size_t index = 0;
    const auto [end, problem] = std::from_chars(device.data(), device.data() + device.size(), index);
    if (problem == std::errc() && end == device.data() + device.size() && index < given.size()
        && std::find(given.begin(), given.end(), device) == given.end())
        device = given[index];
    std::erase_if(device, [](unsigned char c) { return std::isalnum(c) == 0 && c != '-'; });
    return device.empty() || device == "0" ? word : word + '-' + device.substr(0, 64);
}

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
