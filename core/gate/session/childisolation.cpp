// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/session/childisolation.h"

#include "core/device/references/cublibrary.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <linux/capability.h>
#include <map>
#include <mutex>
#include <set>
#include <utility>

namespace klineage::gate {

namespace {

namespace fs = std::filesystem;

std::vector<fs::path> pathsOf(const char *variable)
{
    std::vector<fs::path> paths;
    const char *value = std::getenv(variable);
    const std::string text = value ? value : "";
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find(':', begin), text.size());
        if (const fs::path path = text.substr(begin, end - begin); path.is_absolute())
            paths.push_back(path);
        begin = end + 1;
    }
    return paths;
}

/// Folders that the system's loader searches because of its configuration or the environment.
std::vector<fs::path> configuredLibraryFolders()
{
    std::vector<fs::path> folders = pathsOf("LD_LIBRARY_PATH");
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator("/etc/ld.so.conf.d", ignored)) {
        std::ifstream file(entry.path());
        for (std::string line; std::getline(file, line);) {
            if (!line.empty() && line.front() == '/')
                folders.emplace_back(line);
        }
    }
    return folders;
}

std::vector<fs::path> toolkitRoots()
{
    std::vector<fs::path> roots;
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"}) {
        for (fs::path &root : pathsOf(variable))
            roots.push_back(std::move(root));
    }
    roots.emplace_back("/usr/local/cuda");
    roots.emplace_back("/opt/cuda");
    return roots;
}

/// The shared libraries of a folder, and (of a folder of the system) the folders in it, but no loose files: /usr/lib has some that
/// describe the machine.
void addLibraries(const fs::path &folder, bool withFolders, std::vector<fs::path> &paths)
{
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(folder, ignored)) {
        const bool inner = entry.is_directory(ignored);
        if (inner ? withFolders : entry.path().filename().string().find(".so") != std::string::npos)
            paths.push_back(entry.path());
    }
}

/// Files mapped into this process to be executed: its program and libraries, wherever they lie.
std::vector<fs::path> ownImages()
{
    std::set<fs::path> images;
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        const auto path = line.find('/');
        if (path != std::string::npos && line.find(" r-xp ") != std::string::npos)
            images.insert(line.substr(path));
    }
    return {images.begin(), images.end()};
}

void addBeginning(const fs::path &folder, const std::string &beginning, std::vector<fs::path> &paths)
{
    std::error_code ignored;
    for (const auto &entry : fs::directory_iterator(folder, ignored)) {
        if (entry.path().filename().string().compare(0, beginning.size(), beginning) == 0)
            paths.push_back(entry.path());
    }
}

void append(std::vector<fs::path> &paths, const std::vector<fs::path> &more)
{
    paths.insert(paths.end(), more.begin(), more.end());
}

std::vector<fs::path> systemFolders()
{
    // /lib and /lib64 are links to these on today's systems; where they are not, they are libraries all the same.
    std::vector<fs::path> folders;
    std::set<fs::path> seen;
    for (const char *name :
         {"/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/local/lib64"}) {
        std::error_code missing;
        if (const fs::path real = fs::canonical(name, missing); !missing && seen.insert(real).second)
            folders.push_back(real);
    }
    return folders;
}

/// The libraries of the machine, listed anew when one of their folders changed.
std::vector<fs::path> libraries()
{
    using Folders = std::map<fs::path, std::pair<bool, fs::file_time_type>>; // and whether with their folders
    static std::mutex mutex;
    static Folders known;
    static std::vector<fs::path> listed;
    Folders now;
    std::error_code ignored;
    for (const fs::path &folder : configuredLibraryFolders())
        now[folder] = {false, fs::last_write_time(folder, ignored)};
    for (const fs::path &folder : systemFolders())
        now[folder] = {true, fs::last_write_time(folder, ignored)};
    const std::lock_guard lock(mutex);
    if (now == known)
        return listed;
    listed.clear();
    for (const auto &[folder, kind] : now)
        addLibraries(folder, kind.first, listed);
    known = std::move(now);
    return listed;
}

} // namespace

process::Isolation workerIsolation(kernel::DeviceKind device, const fs::path &scratch)
{
    process::Isolation reach;
    reach.readable = ownImages();
    append(reach.readable, libraries());
    append(reach.readable, {"/etc/ld.so.cache",   "/etc/localtime",    "/proc/cmdline", "/proc/cpuinfo",
                            "/proc/meminfo",      "/proc/stat",        "/proc/loadavg", "/proc/version",
                            "/proc/devices",      "/proc/filesystems", "/proc/modules", "/proc/driver",
                            "/proc/sys/kernel",   "/proc/sys/vm",      "/sys/devices",  "/sys/bus",
                            "/sys/class",         "/sys/dev",          "/sys/module",   "/sys/kernel/mm",
                            "/sys/fs/cgroup",
                            "/run/opengl-driver", // libraries on NixOS
                            "/nix/store",         "/usr/local/nvidia"});
    append(reach.readable, toolkitRoots());
    reach.writable = {scratch};
    reach.devices = {"/dev/null",    "/dev/zero", "/dev/full", "/dev/random",
                     "/dev/urandom", "/dev/dri",  "/dev/kfd",  "/dev/dxg"};
    addBeginning("/dev", "nvidia", reach.devices);
    if (device == kernel::DeviceKind::Cuda) {
        // The driver shares descriptors with itself over a local socket, and counters may be for administrators.
        append(reach.readable, {"/usr/share/nvidia", cubLibraryPath()});
        append(reach.writable, {"/dev/shm", "/tmp/nvidia-mps"});
        append(reach.writable, pathsOf("CUDA_MPS_PIPE_DIRECTORY"));
        reach.localSockets = true;
        reach.capabilities = {CAP_SYS_ADMIN};
    } else {
        // PoCL starts the system's linker, and moves what it compiled within its cache.
        append(reach.readable, {"/usr/bin", "/usr/share/pocl", "/usr/share/clc", "/etc/OpenCL", "/opt/rocm"});
        append(reach.readable, pathsOf("OCL_ICD_VENDORS"));
        append(reach.readable, pathsOf("OCL_ICD_FILENAMES"));
        reach.movesFiles = true;
        reach.systemCalls = process::SystemCalls::Listed;
    }
    return reach;
}

process::Isolation compilerIsolation(const fs::path &scratch)
{
    process::Isolation reach;
    reach.readable = ownImages();
    // Libraries one by one: a source can name any other file in an #include, and messages quote what they complain about.
    std::set<fs::path> folders;
    for (const fs::path &image : reach.readable)
        folders.insert(image.parent_path());
    for (const fs::path &folder : folders) {
        for (const char *library : {"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0",
                                    "libgcc_s.so.1", "libstdc++.so.6"})
            reach.readable.push_back(folder / library);
    }
    for (const auto &list : {systemFolders(), configuredLibraryFolders()})
        folders.insert(list.begin(), list.end());
    for (const fs::path &root : toolkitRoots()) {
        for (const char *folder : {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"})
            folders.insert(root / folder);
        reach.readable.push_back(root / "include");
    }
    for (const fs::path &folder : folders)
        addBeginning(folder, "libnvrtc", reach.readable);
    append(reach.readable, {"/etc/ld.so.cache", "/sys/devices/system/cpu"});
    reach.writable = {scratch};
    reach.devices = {"/dev/null", "/dev/urandom"};
    reach.ownProcess = false;
    reach.systemCalls = process::SystemCalls::Listed;
    reach.startsPrograms = false;
    return reach;
}

process::Isolation pythonIsolation(const std::vector<fs::path> &interpreter, const fs::path &scratch)
{
    process::Isolation reach;
    reach.readable = libraries();
    append(reach.readable, interpreter);
    append(reach.readable, {"/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo", "/proc/cpuinfo",
                            "/proc/meminfo", "/proc/stat", "/proc/sys/kernel", "/proc/sys/vm",
                            "/sys/devices/system", "/sys/kernel/mm", "/sys/fs/cgroup"});
    reach.writable = {scratch};
    reach.devices = {"/dev/null", "/dev/zero", "/dev/urandom", "/dev/random"};
    reach.systemCalls = process::SystemCalls::Listed;
    reach.startsPrograms = false;
    return reach;
}

std::string withoutForeignText(const std::string &log)
{
    const auto roots = toolkitRoots();
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        const std::string line = log.substr(begin, end - begin);
        begin = end + 1;
        const auto place = line.find('(');
        if (line.empty() || line.front() != '/' || place == std::string::npos)
            continue;
        const std::string file = fs::path(line.substr(0, place)).lexically_normal().string();
        const bool ours = std::any_of(roots.begin(), roots.end(), [&](const fs::path &root) {
            const std::string folder = (root / "include/").string();
            return file.compare(0, folder.size(), folder) == 0;
        });
        if (!ours)
            return "error: cannot open source file: it is none of the CUDA Toolkit's headers. What the compiler says "
                   "about it is withheld.\n";
    }
    return log;
}

std::vector<std::string> inheritedVariables()
{
    return {"PATH",         "LANG",    "LANGUAGE", "LC_*",         "LD_LIBRARY_PATH", "CUDA_*",
            "CUBLAS*",      "CUDNN_*", "NVIDIA_*", "NVRTC_*",      "OCL_*",           "POCL_*",
            "OMP_*",        "GOMP_*",  "KMP_*",    "OPENBLAS_*",   "GOTO_*",          "BLIS_*",
            "MKL_*",        "DNNL_*",  "ONEDNN_*", "ASAN_OPTIONS", "UBSAN_OPTIONS",   "LSAN_OPTIONS",
            "TSAN_OPTIONS", "ROCR_*",  "HIP_*",    "ZE_*"};
}

} // namespace klineage::gate
