// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/library.h"

#include <cstdlib>
#include <dlfcn.h>
#include <filesystem>

namespace klineage::gate::cuda {

namespace {

std::vector<std::string> toolkitRoots()
{
    std::vector<std::string> roots;
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const char *value = std::getenv(variable); value && *value)
            roots.emplace_back(value);
    }
    roots.emplace_back("/usr/local/cuda");
    return roots;
}

} // namespace

Result<Library> Library::open(const std::vector<std::string> &names, const std::string &package)
{
    std::vector<std::string> candidates = names;
    for (const std::string &root : toolkitRoots()) {
        for (const char *folder :
             {"/lib64/", "/lib/", "/targets/x86_64-linux/lib/", "/extras/CUPTI/lib64/"}) {
            for (const std::string &name : names)
                candidates.push_back(root + folder + name);
        }
    }
    for (const std::string &candidate : candidates) {
        if (void *handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL)) {
            Library library;
            library.m_handle = handle;
            library.m_name = candidate;
            return library;
        }
    }
    return fail(ErrorCode::Unavailable,
                "Cannot load " + names.front() + ": no such library. It comes with " + package + ".");
}

void *Library::find(const char *symbol) const
{
    return dlsym(m_handle, symbol);
}

std::vector<std::string> includeFolders()
{
    std::vector<std::string> folders;
    for (const std::string &root : toolkitRoots()) {
        for (const char *suffix : {"/include", "/include/cccl"}) {
            std::error_code ignored;
            if (std::filesystem::is_directory(root + suffix, ignored))
                folders.push_back(root + suffix);
        }
    }
    return folders;
}

} // namespace klineage::gate::cuda
