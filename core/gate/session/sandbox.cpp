// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/sandbox.h"

#include "core/gate/session/childisolation.h"

#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

namespace klineage::gate {

namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;
constexpr double helperLimitSeconds = 10;

// The address sanitizer reserves terabytes of address space.
#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

/// An isolated process gains no privileges, so the driver's own helper cannot make device files for it.
void makeDeviceFiles()
{
    std::error_code ignored;
    if (!std::filesystem::exists("/proc/driver/nvidia/version", ignored)
        || std::filesystem::exists("/dev/nvidia-uvm", ignored))
        return;
    process::ChildOptions options;
    options.command = {"nvidia-modprobe", "-u", "-c=0"};
    if (auto helper = process::ChildProcess::start(options))
        (void)helper->wait(process::Deadline::in(helperLimitSeconds));
}

process::ChildOptions isolated(process::Isolation reach, const std::filesystem::path &scratch)
{
    process::ChildOptions options;
    options.isolation = std::move(reach);
    options.inheritedVariables = inheritedVariables();
    options.workingDirectory = scratch;
    options.environment = {
        {"HOME", scratch.string()}, {"TMPDIR", scratch.string()}, {"XDG_CACHE_HOME", scratch.string()}};
    return options;
}

} // namespace

std::uint64_t physicalMemory()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long pageBytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && pageBytes > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(pageBytes)
               : 8 * gibibyte;
}

std::filesystem::path cacheDirectory()
{
    std::filesystem::path base;
    if (const char *xdg = std::getenv("XDG_CACHE_HOME"); xdg && *xdg == '/')
        base = xdg;
    else if (const char *home = std::getenv("HOME"); home && *home == '/')
        base = std::filesystem::path(home) / ".cache";
    else
        return {};
    std::error_code ignored;
    std::filesystem::create_directories(base / "klineage", ignored);
    return std::filesystem::is_directory(base / "klineage", ignored) ? base / "klineage"
                                                                     : std::filesystem::path();
}

std::filesystem::path programFolder(const std::filesystem::path &scratch)
{
    return scratch / "pocl";
}

process::ChildOptions workerSandbox(kernel::DeviceKind device, const std::filesystem::path &scratch)
{
    if (device == kernel::DeviceKind::Cuda)
        makeDeviceFiles();
    process::ChildOptions options = isolated(workerIsolation(device, scratch), scratch);
    const bool compiles = kernel::traitsOf(device).isHost;
    options.limits = {
        {RLIMIT_CORE, 0}, {RLIMIT_FSIZE, compiles ? gibibyte / 4 : 4 * gibibyte}, {RLIMIT_NOFILE, 1024}};
    // CUDA reserves address space for all memory of the machine and its devices, so only the CPU's worker can be bounded by it. What
    // compiling may take is for the candidate's source to waste; what its buffers need is known and added later.
    if (compiles && !sanitized) {
        options.limits.push_back({RLIMIT_AS, physicalMemory() + 16 * gibibyte});
        options.limits.push_back({RLIMIT_DATA, physicalMemory() + 16 * gibibyte, compileMemoryBytes});
    }
    // Threads of the CPU references sleep after a call, and leave the cores to what is timed next.
    options.environment.insert(options.environment.end(),
                               {{"OMP_WAIT_POLICY", "PASSIVE"}, {"OPENBLAS_THREAD_TIMEOUT", "10"}});
    if (kernel::traitsOf(device).linksHere) {
        // PoCL starts the system's linker by its name. These folders are what the sandbox lets it start programs from, so they come
        // first, and are there when the gate itself was started without any PATH.
        const char *path = std::getenv("PATH");
        options.environment.emplace_back("PATH", std::string("/usr/bin:/bin") + (path && *path ? ":" : "")
                                                     + (path ? path : ""));
        // What PoCL opens has its jumps bound at once, so that nothing of it has to be written later (standin.cpp).
        options.environment.emplace_back("LD_BIND_NOW", "1");
    }
    // Its own, because a kernel on the CPU can write to it: what one candidate left must not be another one's program.
    std::error_code ignored;
    std::filesystem::create_directories(programFolder(scratch), ignored);
    options.environment.emplace_back("POCL_CACHE_DIR", programFolder(scratch).string());
    return options;
}

process::ChildOptions compilerSandbox(const std::filesystem::path &scratch)
{
    process::ChildOptions options = isolated(compilerIsolation(scratch), scratch);
    options.limits = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, gibibyte / 4}, {RLIMIT_NOFILE, 256}};
    if (!sanitized) {
        options.limits.push_back({RLIMIT_AS, 16 * gibibyte});
        options.limits.push_back({RLIMIT_DATA, compileMemoryBytes});
    }
    return options;
}

process::ChildOptions pythonSandbox(const std::vector<std::filesystem::path> &interpreter,
                                    const std::filesystem::path &scratch)
{
    process::ChildOptions options = isolated(pythonIsolation(interpreter, scratch), scratch);
    options.inheritedVariables->insert(options.inheritedVariables->end(),
                                       {"PYTHONPATH", "PYTHONHOME", "VIRTUAL_ENV"});
    // Libraries look for a GPU that the process may not open.
    options.environment.emplace_back("CUDA_VISIBLE_DEVICES", "");
    options.limits = {{RLIMIT_CORE, 0},
                      {RLIMIT_FSIZE, gibibyte / 4},
                      {RLIMIT_NOFILE, 256},
                      {RLIMIT_AS, physicalMemory() + 64 * gibibyte},
                      {RLIMIT_DATA, physicalMemory()}};
    return options;
}

} // namespace klineage::gate
