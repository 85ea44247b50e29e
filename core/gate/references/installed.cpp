// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/references/installed.h"

#include "core/device/references/cublibrary.h"
#include "core/device/references/onednnlibrary.h"
#include "core/gate/references/python.h"

#include <cstdlib>
#include <dlfcn.h>

namespace klineage::gate {

namespace {

/// A library of NVIDIA's, and its function that tells the parts of its version.
struct Vendor {
    const char *provider;
    std::vector<std::string> names;
    const char *property;
    const char *package;
};

const std::vector<Vendor> &vendors()
{
    static const std::vector<Vendor> list{
        {"cublas", {"libcublas.so.13", "libcublas.so.12"}, "cublasGetProperty", "the CUDA Toolkit"},
        {"cublaslt", {"libcublasLt.so.13", "libcublasLt.so.12"}, "cublasLtGetProperty", "the CUDA Toolkit"},
        {"cudnn", {"libcudnn.so.9"}, "cudnnGetProperty", "cuDNN 9"},
    };
    return list;
}

void *openLibrary(const std::vector<std::string> &names)
{
    std::vector<std::string> folders{""};
    for (const char *variable : {"CUDA_PATH", "CUDA_HOME"}) {
        if (const char *root = std::getenv(variable); root && *root)
            folders.push_back(std::string(root) + "/lib64/");
    }
    folders.emplace_back("/usr/local/cuda/lib64/");
    for (const std::string &folder : folders) {
        for (const std::string &name : names) {
            if (void *library = ::dlopen((folder + name).c_str(), RTLD_LAZY | RTLD_LOCAL))
                return library;
        }
    }
    return nullptr;
}

InstalledReference probe(const Vendor &vendor)
{
    void *library = openLibrary(vendor.names);
    if (!library)
        return {vendor.provider,
                {},
                "There is no " + vendor.names.front() + ": it comes with " + vendor.package + "."};
    const auto property = reinterpret_cast<int (*)(int, int *)>(::dlsym(library, vendor.property));
    std::string version;
    for (int part = 0; property && part < 3; ++part) { // major, minor, patch
        int value = 0;
        if (property(part, &value) != 0)
            return {vendor.provider, {}, vendor.names.front() + " does not tell its version."};
        version += (part == 0 ? "" : ".") + std::to_string(value);
    }
    if (version.empty())
        return {vendor.provider, {}, vendor.names.front() + " misses " + vendor.property + "."};
    return {vendor.provider, version, {}};
}

InstalledReference probeCub()
{
    void *library = openLibrary({cubLibraryPath().string()});
    const auto number =
        library ? reinterpret_cast<int (*)()>(::dlsym(library, "klineage_cub_version")) : nullptr;
    if (!number)
        return {"cub", {}, "There is no libklineage-cub.so beside this program: build it where nvcc is."};
    const int version = number(); // CUB_VERSION, 300001 of 3.0.1
    return {"cub",
            std::to_string(version / 100000) + "." + std::to_string(version / 100 % 1000) + "."
                + std::to_string(version % 100),
            {}};
}

InstalledReference probeOpenBlas()
{
    void *library = openLibrary({"libopenblas.so.0"});
    const auto config =
        library ? reinterpret_cast<const char *(*)()>(::dlsym(library, "openblas_get_config")) : nullptr;
    if (!config)
        return {"openblas", {}, "There is no libopenblas.so.0: install libopenblas0-pthread."};
    std::string text = config(); // "OpenBLAS 0.3.21 DYNAMIC_ARCH …"
    const auto begin = text.find_first_of("0123456789");
    if (begin != std::string::npos)
        text = text.substr(begin, text.find(' ', begin) - begin);
    return {"openblas", text, {}};
}

InstalledReference probeOneDnn()
{
    void *library = openLibrary({dnnl::libraryNames.begin(), dnnl::libraryNames.end()});
    const auto version =
        library ? reinterpret_cast<const dnnl::LibraryVersion *(*)()>(::dlsym(library, "dnnl_version"))
                : nullptr;
    if (!version)
        return {"onednn", {}, std::string("Cannot load oneDNN: ") + dnnl::notInstalled};
    const dnnl::LibraryVersion *v = version();
    return {"onednn",
            std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch),
            {}};
}

} // namespace

std::vector<InstalledReference> installedReferences()
{
    std::vector<InstalledReference> found;
    for (const Vendor &vendor : vendors())
        found.push_back(probe(vendor));
    found.push_back(probeCub());
    found.push_back(probeOpenBlas());
    found.push_back(probeOneDnn());
    const auto packages = installedPythonReferences();
    for (const char *provider : pythonProviders) {
        InstalledReference reference{provider, {}, {}};
        if (!packages)
            reference.problem = packages.error().message;
        else if (const auto version = packages->find(provider); version != packages->end())
            reference.version = version->second;
        else
            reference.problem = "python3 has no such package; KLINEAGE_PYTHON names another interpreter.";
        found.push_back(std::move(reference));
    }
    return found;
}

} // namespace klineage::gate
