// SPDX-License-Identifier: GPL-3.0-or-later
//
// NVRTC turns a candidate into a cubin without a device, a driver or a host compiler.
#include "core/device/backend.h"
#include "core/device/cuda/library.h"
#include "core/device/cuda/ptxaslog.h"

#include <nvrtc.h>

#include <array>

namespace klineage::gate {

namespace {

struct Nvrtc {
    decltype(&::nvrtcVersion) version = nullptr;
    decltype(&::nvrtcCreateProgram) createProgram = nullptr;
    decltype(&::nvrtcDestroyProgram) destroyProgram = nullptr;
    decltype(&::nvrtcCompileProgram) compileProgram = nullptr;
    decltype(&::nvrtcGetProgramLogSize) getProgramLogSize = nullptr;
    decltype(&::nvrtcGetProgramLog) getProgramLog = nullptr;
    decltype(&::nvrtcGetCUBINSize) getCubinSize = nullptr;
    decltype(&::nvrtcGetCUBIN) getCubin = nullptr;
    decltype(&::nvrtcGetPTXSize) getPtxSize = nullptr;
    decltype(&::nvrtcGetPTX) getPtx = nullptr;
    decltype(&::nvrtcGetErrorString) getErrorString = nullptr;

    static Result<Nvrtc> load();
};

Result<Nvrtc> Nvrtc::load()
{
    auto library = cuda::Library::open({"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"},
                                       "the CUDA Toolkit 12 or later (NVRTC)");
    if (!library)
        return tl::unexpected(library.error());
    Nvrtc nvrtc;
    const bool complete = library->resolve(nvrtc.version, "nvrtcVersion")
                          && library->resolve(nvrtc.createProgram, "nvrtcCreateProgram")
                          && library->resolve(nvrtc.destroyProgram, "nvrtcDestroyProgram")
                          && library->resolve(nvrtc.compileProgram, "nvrtcCompileProgram")
                          && library->resolve(nvrtc.getProgramLogSize, "nvrtcGetProgramLogSize")
                          && library->resolve(nvrtc.getProgramLog, "nvrtcGetProgramLog")
                          && library->resolve(nvrtc.getCubinSize, "nvrtcGetCUBINSize")
                          && library->resolve(nvrtc.getCubin, "nvrtcGetCUBIN")
                          && library->resolve(nvrtc.getPtxSize, "nvrtcGetPTXSize")
                          && library->resolve(nvrtc.getPtx, "nvrtcGetPTX")
                          && library->resolve(nvrtc.getErrorString, "nvrtcGetErrorString");
    if (!complete)
        return fail(ErrorCode::Unavailable,
                    "Cannot use " + library->name() + ": it is older than NVRTC 11.1.");
    return nvrtc;
}

constexpr std::size_t mostLog = std::size_t{1} << 20; ///< a candidate can have as much written as it likes

/// minimal: without declarations that few kernels use (textures, the runtime's functions on the device), which take as long to read as
/// a small kernel takes to compile.
std::vector<std::string> compileOptions(const std::map<std::string, std::int64_t> &tunables,
                                        const std::string &target, bool minimal)
{
    std::vector<std::string> options = {"--gpu-architecture=" + target, "--std=c++17", "-lineinfo",
                                        "--ptxas-options=-v"};
    if (minimal)
        options.emplace_back("--minimal");
    for (const std::string &folder : cuda::includeFolders())
        options.push_back("--include-path=" + folder);
    for (const auto &[name, value] : tunables)
        options.push_back("-D" + name + "=" + std::to_string(value));
    return options;
}

std::string programLog(const Nvrtc &nvrtc, nvrtcProgram program)
{
    std::size_t size = 0;
    if (nvrtc.getProgramLogSize(program, &size) != NVRTC_SUCCESS || size <= 1)
        return {};
    std::string log(size, '\0');
    nvrtc.getProgramLog(program, log.data());
    while (!log.empty() && log.back() == '\0')
        log.pop_back();
    if (log.size() > mostLog)
        log.replace(mostLog / 2, log.size() - mostLog, "\n[the middle of this log was cut]\n");
    return log;
}

std::vector<std::byte> cubinOf(const Nvrtc &nvrtc, nvrtcProgram program)
{
    std::size_t size = 0;
    if (nvrtc.getCubinSize(program, &size) != NVRTC_SUCCESS)
        return {};
    std::vector<std::byte> cubin(size);
    if (nvrtc.getCubin(program, reinterpret_cast<char *>(cubin.data())) != NVRTC_SUCCESS)
        return {};
    return cubin;
}

/// The text without its end of string.
std::vector<std::byte> ptxOf(const Nvrtc &nvrtc, nvrtcProgram program)
{
    std::size_t size = 0;
    if (nvrtc.getPtxSize(program, &size) != NVRTC_SUCCESS || size <= 1)
        return {};
    std::vector<std::byte> ptx(size);
    if (nvrtc.getPtx(program, reinterpret_cast<char *>(ptx.data())) != NVRTC_SUCCESS)
        return {};
    ptx.pop_back();
    return ptx;
}

} // namespace

Result<CompileOutput> compileCuda(const std::string &source, const std::string &name,
                                  const std::map<std::string, std::int64_t> &tunables,
                                  const std::string &target)
{
    const auto nvrtc = Nvrtc::load();
    if (!nvrtc)
        return tl::unexpected(nvrtc.error());
    int major = 0;
    int minor = 0;
    nvrtc->version(&major, &minor);

    // What needs more than the least, has mistakes, or meets an NVRTC that does not know of it, is compiled once more; what is said is of that.
    nvrtcProgram program = nullptr;
    nvrtcResult result = NVRTC_SUCCESS;
    for (const bool minimal : {true, false}) {
        if (program)
            nvrtc->destroyProgram(&program);
        result = nvrtc->createProgram(&program, source.c_str(), name.c_str(), 0, nullptr, nullptr);
        if (result != NVRTC_SUCCESS)
            return fail(ErrorCode::Internal,
                        "Cannot start NVRTC on " + name + ": " + nvrtc->getErrorString(result) + ".");
        const std::vector<std::string> options = compileOptions(tunables, target, minimal);
        std::vector<const char *> arguments;
        for (const std::string &option : options)
            arguments.push_back(option.c_str());
        result = nvrtc->compileProgram(program, static_cast<int>(arguments.size()), arguments.data());
        if (result == NVRTC_SUCCESS)
            break;
    }

    CompileOutput output;
    output.compiler = "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
    output.log = programLog(*nvrtc, program);
    if (result == NVRTC_SUCCESS) {
        const bool isVirtual = target.rfind("compute_", 0) == 0;
        output.binary = isVirtual ? ptxOf(*nvrtc, program) : cubinOf(*nvrtc, program);
        output.ok = !output.binary.empty();
        output.metrics = cuda::metricsFromPtxasLog(output.log);
        output.metrics.push_back({"binary_bytes", static_cast<double>(output.binary.size()), "B", ""});
    }
    nvrtc->destroyProgram(&program);
    return output;
}

} // namespace klineage::gate
