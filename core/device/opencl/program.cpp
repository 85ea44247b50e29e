// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/opencl/program.h"

#include "core/device/opencl/refusedwords.h"

#include <array>
#include <regex>

namespace klineage::gate::opencl {

namespace {

constexpr std::size_t maxLogBytes = std::size_t{256} << 10;
constexpr std::size_t maxCleanedLine = 2000;

/// Compilers that know none of these words ignore them.
constexpr const char *firstLines = "#pragma clang diagnostic error \"-Wgnu-label-as-value\"\n#line 1\n";

std::string buildLog(const Device &device, cl_program program)
{
    std::size_t bytes = 0;
    if (device.api->clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, 0, nullptr, &bytes)
            != CL_SUCCESS
        || bytes == 0)
        return {};
    std::string log(bytes, '\0');
    device.api->clGetProgramBuildInfo(program, device.id, CL_PROGRAM_BUILD_LOG, bytes, log.data(), nullptr);
    log.resize(std::min(log.find('\0'), log.size()));
    if (log.size() > maxLogBytes)
        log = log.substr(0, maxLogBytes) + "\n[the rest of the log was cut]\n";
    return log;
}

} // namespace

std::string cleanLog(const std::string &log)
{
    std::string clean;
    clean.reserve(log.size());
    // Line by line: std::regex recurses over long inputs. PoCL writes "error: FILE:12:5: what", others "FILE:12:5: error: what".
    static const std::regex file(
        R"((?:[^:\s]*/)?[^:\s/]*(?:tempfile|program|<source>|<kernel>|\.cl)[^:\s]*:(\d+):)");
    static const std::regex wordFirst(R"(^(error|warning|note): (<candidate>:\d+:(?:\d+:)?))");
    for (std::size_t begin = 0; begin < log.size();) {
        const std::size_t end = std::min(log.find('\n', begin), log.size());
        const std::string line = log.substr(begin, end - begin);
        if (line.find("redefining builtin macro") != std::string::npos) {
            begin = end + 1; // that was the worker, not the candidate
            continue;
        }
        if (line.size() < maxCleanedLine) {
            const std::string named =
                std::regex_replace(line, file, "<candidate>:$1:", std::regex_constants::format_first_only);
            clean += std::regex_replace(named, wordFirst, "$2 $1:");
        } else {
            clean += line;
        }
        if (end < log.size())
            clean += '\n';
        begin = end + 1;
    }
    return clean;
}

Result<Program> buildProgram(const Device &device, cl_context context, const std::string &source,
                             const std::map<std::string, std::int64_t> &tunables, CompileOutput &output)
{
    const Api &api = *device.api;
    output.compiler = compilerOf(device);
    std::array<const char *, 2> texts{firstLines, source.c_str()};
    cl_int code = CL_SUCCESS;
    Program program(api, api.clCreateProgramWithSource(context, texts.size(), texts.data(), nullptr, &code));
    if (auto made = check(code, "hand the source to the OpenCL compiler"); !made)
        return tl::unexpected(made.error());
    std::string options = "-cl-kernel-arg-info";
    // Macros reach a word however it was put together. They cannot be taken back: the gate looks for that in the source.
    for (const char *word : refusedWords)
        options += std::string(" -D") + word + "=" + word + "_is_refused";
    for (const char *question : refusedQuestions)
        options += std::string(" -D") + question + "=questions_about_files_are_refused";
    for (const auto &[name, value] : tunables)
        options += " -D" + name + "=" + std::to_string(value);
    code = api.clBuildProgram(program.get(), 1, &device.id, options.c_str(), nullptr, nullptr);
    output.log = cleanLog(buildLog(device, program.get()));
    output.ok = code == CL_SUCCESS;
    if (!output.ok)
        return fail(ErrorCode::InvalidInput,
                    "The OpenCL compiler refused the source: " + errorName(code) + ".");
    return program;
}

} // namespace klineage::gate::opencl
