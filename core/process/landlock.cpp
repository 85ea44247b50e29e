// SPDX-License-Identifier: GPL-3.0-or-later
//
// The kernel's interface is spelled out here, because the headers of a distribution know only the ABI of its own kernel.
#include "core/process/landlock.h"

#include "core/process/syscallnumbers.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <fcntl.h>
#include <sys/stat.h>

namespace klineage::process {

namespace {

constexpr int newestAbi = 7;
constexpr long createRuleset = 444; // the same numbers on every architecture
constexpr long addRule = 445;
constexpr long restrictSelf = 446;

struct RulesetAttributes {
    std::uint64_t handledFiles = 0;
    std::uint64_t handledNetwork = 0; // ABI 4
    std::uint64_t scoped = 0;         // ABI 6
};

struct __attribute__((packed)) PathBeneath {
    std::uint64_t allowed = 0;
    std::int32_t parent = -1;
};

constexpr std::uint64_t bit(int number)
{
    return std::uint64_t{1} << number;
}
constexpr std::uint64_t execute = bit(0);
constexpr std::uint64_t writeFile = bit(1);
constexpr std::uint64_t readFile = bit(2);
constexpr std::uint64_t readFolder = bit(3);
constexpr std::uint64_t makeCharacterDevice = bit(6);
constexpr std::uint64_t makeBlockDevice = bit(11);
constexpr std::uint64_t refer = bit(13);    // ABI 2
constexpr std::uint64_t truncate = bit(14); // ABI 3
constexpr std::uint64_t ioctlDevice = bit(15);
constexpr std::uint64_t ofFiles = execute | writeFile | readFile | truncate | ioctlDevice;

constexpr std::uint64_t knownTo(int abi)
{
    std::uint64_t rights = bit(13) - 1;
    if (abi >= 2)
        rights |= refer;
    if (abi >= 3)
        rights |= truncate;
    if (abi >= 5)
        rights |= ioctlDevice;
    return rights;
}

constexpr std::uint64_t reading = execute | readFile | readFolder;
constexpr std::uint64_t writing =
    (bit(15) - 1) & ~(execute | makeCharacterDevice | makeBlockDevice); // everything else up to truncate
constexpr std::uint64_t driving = readFile | readFolder | writeFile | truncate | ioctlDevice;

int allow(int ruleset, const char *path, std::uint64_t rights)
{
    const int fd = ::open(path, O_PATH | O_CLOEXEC);
    if (fd < 0)
        return 0; // it is not there, or cannot be reached anyway
    struct stat info = {};
    if (::fstat(fd, &info) == 0 && !S_ISDIR(info.st_mode))
        rights &= ofFiles;
    const PathBeneath rule{rights, fd};
    const long added = ::syscall(addRule, ruleset, 1, &rule, 0);
    const int problem = added == 0 ? 0 : errno;
    ::close(fd);
    return problem;
}

} // namespace

int landlockAbi()
{
    const long version = ::syscall(createRuleset, nullptr, 0, 1); // 1: asks for the version
    return static_cast<int>(std::clamp(version, 0L, static_cast<long>(newestAbi)));
}

Result<FileDescriptor> landlockRuleset(const Isolation &isolation, const std::vector<std::string> &programs,
                                       int abi)
{
    RulesetAttributes attributes;
    attributes.handledFiles = knownTo(abi);
    std::size_t size = sizeof attributes.handledFiles;
    if (abi >= 4) {
        attributes.handledNetwork = bit(0) | bit(1); // TCP bind and connect
        size += sizeof attributes.handledNetwork;
    }
    if (abi >= 6) {
        attributes.scoped = bit(0) | bit(1); // abstract sockets and signals of others
        size += sizeof attributes.scoped;
    }
    const auto failed = [](int problem) {
        return fail(ErrorCode::Io,
                    std::string("Cannot set up Landlock for a process: ") + std::strerror(problem) + ".");
    };
    FileDescriptor made(static_cast<int>(::syscall(createRuleset, &attributes, size, 0)));
    if (!made)
        return failed(errno);
    constexpr int aboveInherited = 200;
    FileDescriptor ruleset(::fcntl(made.get(), F_DUPFD_CLOEXEC, aboveInherited));
    if (!ruleset)
        return failed(errno);
    const std::uint64_t known = attributes.handledFiles;
    const auto allowAll = [&](const auto &paths, std::uint64_t rights) {
        for (const auto &path : paths) {
            if (const int problem = allow(ruleset.get(), path.c_str(), rights & known); problem != 0)
                return problem;
        }
        return 0;
    };
    for (const int problem : {allowAll(programs, reading), allowAll(isolation.readable, reading),
                              allowAll(isolation.writable, writing), allowAll(isolation.devices, driving)}) {
        if (problem != 0)
            return failed(problem);
    }
    return ruleset;
}

int enterLandlock(int ruleset, bool ownProcess, int abi) noexcept
{
    if (ownProcess) {
        // Threads are named by opening a file there as if to replace it.
        const std::uint64_t rights = (readFile | readFolder | writeFile | truncate) & knownTo(abi);
        if (const int problem = allow(ruleset, "/proc/self", rights); problem != 0)
            return problem;
    }
    return ::syscall(restrictSelf, ruleset, 0) == 0 ? 0 : errno;
}

} // namespace klineage::process
