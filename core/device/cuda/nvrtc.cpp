// SPDX-License-Identifier: GPL-3.0-or-later
//
// NVRTC turns a candidate into a cubin without a device, a driver or a host compiler.
#include "core/device/backend.h"
#include "core/device/cuda/headers/standardheaders.h"
#include "core/device/cuda/library.h"
#include "core/device/cuda/ptxaslog.h"
#include "core/device/cuda/ptxwords.h"

#include <nvrtc.h>

#include <algorithm>
#include <filesystem>

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

std::vector<std::string> compileOptions(const std::map<std::string, std::int64_t> &tunables,
                                        const std::string &target, bool isGenerated)
{
    std::vector<std::string> options = {"--gpu-architecture=" + target, "--std=c++17", "-lineinfo",
                                        "--ptxas-options=-v"};
    if (isGenerated) // nobody reads what is wrong with it, and its headers are written for nvcc
        options.insert(options.end(), {"--device-as-default-execution-space", "--disable-warnings"});
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

/// Those that the toolkit has no file of its own for.
struct Headers {
    std::vector<const char *> names;
    std::vector<const char *> texts;
};

/// own: come first, and live as long as what is returned.
Headers headersBeside(const std::vector<std::string> &folders, const HeaderTexts &own)
{
    Headers headers;
    for (const auto &[name, text] : own) {
        headers.names.push_back(name.c_str());
        headers.texts.push_back(text.c_str());
    }
    for (const cuda::StandardHeader &header : cuda::standardHeaders()) {
        const bool isThere = std::any_of(folders.begin(), folders.end(), [&](const std::string &folder) {
            std::error_code ignored;
            return std::filesystem::exists(std::filesystem::path(folder) / header.name, ignored);
        });
        if (header.isOfToolkit && isThere)
            continue;
        headers.names.push_back(header.name);
        headers.texts.push_back(header.text);
    }
    return headers;
}

std::vector<std::string> withMissing(std::vector<std::string> options, const cuda::MissingNames &missing)
{
    for (const std::string &header : missing.headers)
        options.push_back("--pre-include=" + header);
    if (missing.wantsDeviceDefault)
        options.emplace_back("--device-as-default-execution-space");
    return options;
}

/// What was done to the source, first in the log.
std::string noteOf(const cuda::MissingNames &missing)
{
    std::string note;
    for (const std::string &header : missing.headers)
        note += (note.empty() ? "" : ", ") + header;
    if (!note.empty())
        note = "note: as nvcc does, this was included before the first line: " + note + '\n';
    if (missing.wantsDeviceDefault)
        note += "note: functions that say neither __device__ nor __host__ are compiled for the device\n";
    return note;
}

Result<CompileOutput> compileOnce(const Nvrtc &nvrtc, const std::string &source, const std::string &name,
                                  const std::vector<std::string> &options, const std::string &target,
                                  const HeaderTexts &own)
{
    const Headers headers = headersBeside(cuda::includeFolders(), own);
    nvrtcProgram program = nullptr;
    if (const nvrtcResult result = nvrtc.createProgram(&program, source.c_str(), name.c_str(),
                                                       static_cast<int>(headers.names.size()),
                                                       headers.texts.data(), headers.names.data());
        result != NVRTC_SUCCESS)
        return fail(ErrorCode::Internal,
                    "Cannot start NVRTC on " + name + ": " + nvrtc.getErrorString(result) + ".");
    std::vector<const char *> arguments;
    for (const std::string &option : options)
        arguments.push_back(option.c_str());
    const nvrtcResult result =
        nvrtc.compileProgram(program, static_cast<int>(arguments.size()), arguments.data());

    CompileOutput output;
    output.log = programLog(nvrtc, program);
    if (result == NVRTC_SUCCESS) {
        const bool isVirtual = target.rfind("compute_", 0) == 0;
        output.binary = isVirtual ? ptxOf(nvrtc, program) : cubinOf(nvrtc, program);
        output.ok = !output.binary.empty();
        const auto ptx = isVirtual ? output.binary : ptxOf(nvrtc, program);
        const cuda::LocalUse use = cuda::localUseOf({reinterpret_cast<const char *>(ptx.data()), ptx.size()});
        output.usesLocal = use.any;
        if (use.isUnclear) {
            output.ok = false;
            output.log +=
                "error: a text in quotes of its PTX (a pragma, or a file's name) has a backslash, which is not offered: "
                "where such a text ends cannot be told.\n";
        }
        if (use.takesFromStack) {
            output.ok = false;
            output.log +=
                "error: it takes a piece of the stack as it runs (alloca, stacksave), which is not offered: "
                "what lies there lasts from launch to launch. Use a local array, or a workspace of the plan.\n";
        }
        output.metrics = cuda::metricsFromPtxasLog(output.log);
        output.metrics.push_back({"binary_bytes", static_cast<double>(output.binary.size()), "B", ""});
    }
    nvrtc.destroyProgram(&program);
    return output;
}

} // namespace

Result<CompileOutput> compileCuda(const std::string &source, const std::string &name,
                                  const std::map<std::string, std::int64_t> &tunables,
                                  const std::string &target, const HeaderTexts &headers)
{
    const auto nvrtc = Nvrtc::load();
    if (!nvrtc)
        return tl::unexpected(nvrtc.error());
    int major = 0;
    int minor = 0;
    nvrtc->version(&major, &minor);

    const std::vector<std::string> options = compileOptions(tunables, target, !headers.empty());
    auto output = compileOnce(*nvrtc, source, name, options, target, headers);
    if (output && !output->ok && headers.empty()) {
        // nvcc's users have these without a word: they came with cuda_runtime.h and the host compiler.
        const cuda::MissingNames missing = cuda::missingNames(output->log);
        if (!missing.isEmpty())
            output = compileOnce(*nvrtc, source, name, withMissing(options, missing), target, headers);
        if (output && !missing.isEmpty())
            output->log = noteOf(missing) + output->log;
    }
    if (output)
        output->compiler = "nvrtc " + std::to_string(major) + "." + std::to_string(minor);
    return output;
}

} // namespace klineage::gate
