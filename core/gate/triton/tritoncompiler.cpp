// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/tritoncompiler.h"

#include "core/gate/triton/assembler.h"

#include <cstdlib>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr const char *tritonScript =
#include "tritonscript.inc"
    ;

/// "sm_90a" -> 90
int archOf(const std::string &target)
{
    const std::size_t digits = target.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : std::atoi(target.c_str() + digits);
}

} // namespace

std::string TritonVersions::text() const
{
    return "triton " + triton + ", ptxas " + assembler + ", Python " + python;
}

TritonCompiler::TritonCompiler()
    : PythonCompiler({"Triton",
                      "triton",
                      tritonScript,
                      {{"TRITON_DEFAULT_FP_FUSION", "1"}}}) // what every version did before 3.10
{}

WorkerResult<void> TritonCompiler::ensureReady(const std::stop_token &stop)
{
    const auto hello = introduction(stop);
    if (!hello)
        return tl::unexpected(hello.error());
    if (m_versions)
        return {};
    const std::string assembler = textAt(*hello, "assembler");
    const auto release = assemblerRelease(assembler);
    if (!release)
        return missing("its assembler cannot be started: " + release.error().message);
    m_assembler = {assembler};
    for (const json &option : hello->value("assembler_options", json::array()))
        m_assembler.push_back(option.is_string() ? option.get<std::string>() : std::string());
    m_versions = TritonVersions{textAt(*hello, "triton"), textAt(*hello, "python"), *release};
    return {};
}

WorkerResult<TritonVersions> TritonCompiler::versions(const std::stop_token &stop)
{
    if (auto ready = m_versions ? WorkerResult<void>() : ensureReady(stop); !ready)
        return tl::unexpected(ready.error());
    return *m_versions;
}

WorkerResult<std::string> TritonCompiler::version(const std::stop_token &stop)
{
    const auto found = versions(stop);
    if (!found)
        return tl::unexpected(found.error());
    return found->text();
}

WorkerResult<CompileOutput> TritonCompiler::compile(const CompileRequest &request, double limitSeconds,
                                                    const std::stop_token &stop)
{
    const Deadline deadline = Deadline::in(limitSeconds);
    if (auto ready = ensureReady(stop); !ready)
        return tl::unexpected(ready.error());
    const json launches = json::parse(request.launches, nullptr, false);
    const auto reply = ask({{"source", request.source},
                            {"name", request.name},
                            {"arch", archOf(request.target)},
                            {"cuda", m_versions->assembler},
                            {"launches", launches}},
                           Deadline::in(limitSeconds), stop);
    if (!reply)
        return tl::unexpected(reply.error());
    CompileOutput output;
    if (const std::string log = textAt(*reply, "log"); !log.empty()) {
        output.log = log;
    } else if (request.target.starts_with("compute_")) { // PTX itself is asked for
        const std::string ptx = textAt(*reply, "ptx");
        const auto *begin = reinterpret_cast<const std::byte *>(ptx.data());
        output.binary.assign(begin, begin + ptx.size());
        output.ok = true;
    } else {
        auto assembled = assemble(m_assembler, textAt(*reply, "ptx"), request.target, deadline, stop);
        if (!assembled)
            return assembled;
        output = std::move(*assembled);
    }
    output.compiler = m_versions->text();
    try {
        if (output.ok)
            output.launches = launchesOf(*reply, launches);
        return output;
    } catch (const std::exception &) {
        return badAnswer();
    }
}

} // namespace klineage::gate
