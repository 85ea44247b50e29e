// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/supervisor/sandbox.h"

#include <cstdlib>
#include <sys/resource.h>
#include <unistd.h>

namespace klineage::gate {

namespace {

constexpr std::uint64_t gibibyte = std::uint64_t{1} << 30;

// The address sanitizer reserves terabytes of address space.
#ifdef __SANITIZE_ADDRESS__
constexpr bool sanitized = true;
#else
constexpr bool sanitized = false;
#endif

std::uint64_t physicalMemory()
{
    const long pages = ::sysconf(_SC_PHYS_PAGES);
    const long pageBytes = ::sysconf(_SC_PAGESIZE);
    return pages > 0 && pageBytes > 0
               ? static_cast<std::uint64_t>(pages) * static_cast<std::uint64_t>(pageBytes)
               : 8 * gibibyte;
}

} // namespace

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

process::ChildOptions workerSandbox(kernel::Surface surface)
{
    process::ChildOptions options;
    options.limits = {{RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 4 * gibibyte}, {RLIMIT_NOFILE, 1024}};
    // CUDA reserves address space for all memory of the machine and its devices, so only the CPU's worker can be bounded by it.
    if (surface == kernel::Surface::OpenCl && !sanitized)
        options.limits.push_back({RLIMIT_AS, physicalMemory() + 16 * gibibyte});
    // Threads of the CPU references sleep after a call, and leave the cores to what is timed next.
    options.environment = {{"OMP_WAIT_POLICY", "PASSIVE"}, {"OPENBLAS_THREAD_TIMEOUT", "10"}};
    if (const auto cache = cacheDirectory(); !cache.empty() && !std::getenv("POCL_CACHE_DIR")) {
        std::error_code ignored;
        std::filesystem::create_directories(cache / "pocl", ignored);
        options.environment.emplace_back("POCL_CACHE_DIR", (cache / "pocl").string());
    }
    return options;
}

process::ChildOptions compilerSandbox()
{
    process::ChildOptions options;
    options.limits = {
        {RLIMIT_CORE, 0}, {RLIMIT_FSIZE, gibibyte}, {RLIMIT_NOFILE, 256}, {RLIMIT_AS, 16 * gibibyte}};
    return options;
}

} // namespace klineage::gate
