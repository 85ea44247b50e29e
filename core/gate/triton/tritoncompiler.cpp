// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/tritoncompiler.h"

#include "core/device/worker/codec.h"
#include "core/gate/session/sandbox.h"
#include "core/gate/triton/assembler.h"
#include "core/process/scratchfolder.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdlib>
#include <sys/resource.h>

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr int tritonProtocolVersion = 1;
constexpr std::size_t mostMessageBytes = std::size_t{128} << 20;
constexpr double tritonStartSeconds = 60;
constexpr const char *tritonScript =
#include "tritonscript.inc"
    ;

tl::unexpected<WorkerFailure> tritonFailure(FailureKind kind, ErrorCode code, const std::string &message)
{
    return tl::unexpected(WorkerFailure{kind, {code, message, {}}, {}, {}, 0});
}

tl::unexpected<WorkerFailure> tritonMissing(const std::string &why)
{
    return tritonFailure(
        FailureKind::Unavailable, ErrorCode::Unavailable,
        "Cannot compile Triton: " + why
            + " Install the package with \"pip install triton\" for the python3 on PATH, or name another "
              "Python that has it with KLINEAGE_PYTHON.");
}

/// "sm_90a" -> 90
int archOf(const std::string &target)
{
    const std::size_t digits = target.find_first_of("0123456789");
    return digits == std::string::npos ? 0 : std::atoi(target.c_str() + digits);
}

std::string textAt(const json &message, const char *key)
{
    const json value = message.value(key, json());
    return value.is_string() ? value.get<std::string>() : std::string();
}

/// One a launch of the plan, under the names that they were asked for. Throws where the reply is no such thing.
std::vector<CompiledLaunch> launchesOf(const json &reply, const json &asked)
{
    json said = reply.at("launches");
    if (said.size() != asked.size())
        throw std::invalid_argument("launches");
    for (std::size_t i = 0; i < said.size(); ++i)
        said[i]["kernel"] = asked[i].at("entry");
    return protocol::decode<std::vector<CompiledLaunch>>(said);
}

} // namespace

struct TritonCompiler::Process {
    process::ScratchFolder scratch; // before the child, which is gone when it is removed
    process::ChildProcess child;
    process::FramePipe pipe;
    bool introduced = false;
};

std::string TritonVersions::text() const
{
    return "triton " + triton + ", ptxas " + assembler + ", Python " + python;
}

TritonCompiler::TritonCompiler() = default;
TritonCompiler::~TritonCompiler() = default;

tl::unexpected<WorkerFailure> TritonCompiler::end(const Error &error, double limitSeconds)
{
    WorkerFailure failure = compilerFailure(m_process->child, m_process->pipe, error, limitSeconds);
    m_process.reset();
    return tl::unexpected(std::move(failure));
}

WorkerResult<void> TritonCompiler::launch()
{
    const auto machine = [](const Error &error) {
        return tl::unexpected(WorkerFailure{FailureKind::Machine, error, {}, {}, 0});
    };
    if (!m_interpreter) {
        auto found = findInterpreter("compile Triton");
        if (!found)
            return tl::unexpected(WorkerFailure{FailureKind::Unavailable, found.error(), {}, {}, 0});
        m_interpreter = std::move(*found);
    }
    auto sockets = process::socketPair();
    if (!sockets)
        return machine(sockets.error());
    auto scratch = process::ScratchFolder::create();
    if (!scratch)
        return machine(scratch.error());
    process::ChildOptions options = pythonSandbox(m_interpreter->folders, scratch->path());
    for (process::ResourceLimit &limit : options.limits) {
        if (limit.resource == RLIMIT_DATA)
            limit.value = std::min(limit.value, compileMemoryBytes);
    }
    if (!m_interpreter->userBase.empty())
        options.environment.emplace_back("PYTHONUSERBASE", m_interpreter->userBase);
    options.environment.emplace_back("TRITON_DEFAULT_FP_FUSION", "1"); // what every version did before 3.10
    options.command = {m_interpreter->executable, "-u", "-B", "-c", tritonScript};
    options.inherited = {{sockets->second.get(), protocol::socketFd}};
    auto child = process::ChildProcess::start(options);
    if (!child)
        return machine(child.error());
    m_process = std::make_unique<Process>();
    m_process->scratch = std::move(*scratch);
    m_process->child = std::move(*child);
    m_process->pipe = process::FramePipe(std::move(sockets->first), mostMessageBytes);
    sockets->second.close();
    return {};
}

WorkerResult<void> TritonCompiler::ensureReady(const std::stop_token &stop)
{
    if (auto launched = m_process ? WorkerResult<void>() : launch(); !launched)
        return launched;
    if (m_process->introduced)
        return {};
    const auto hello = m_process->pipe.receive(Deadline::in(tritonStartSeconds), &m_process->child, stop);
    if (!hello)
        return end(hello.error(), tritonStartSeconds);
    if (const std::string why = textAt(*hello, "error"); !why.empty()) {
        m_process.reset();
        const std::string executable = m_interpreter->executable;
        m_interpreter.reset(); // another one may be there next time
        return tritonMissing(executable + " has no Triton (" + why.substr(0, 300) + ").");
    }
    if (hello->value("version", json()) != tritonProtocolVersion)
        return end({ErrorCode::Protocol, "The process of Triton did not introduce itself.", {}}, 0);
    if (!m_versions) {
        const std::string assembler = textAt(*hello, "assembler");
        const auto release = assemblerRelease(assembler);
        if (!release) {
            m_process.reset();
            return tritonMissing("its assembler cannot be started: " + release.error().message);
        }
        m_assembler = {assembler};
        for (const json &option : hello->value("assembler_options", json::array()))
            m_assembler.push_back(option.is_string() ? option.get<std::string>() : std::string());
        m_versions = TritonVersions{textAt(*hello, "triton"), textAt(*hello, "python"), *release};
    }
    m_process->introduced = true;
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

WorkerResult<json> TritonCompiler::ask(const CompileRequest &request, double limitSeconds,
                                       const std::stop_token &stop)
{
    const Deadline deadline = Deadline::in(limitSeconds);
    const json message = {{"source", request.source},
                          {"name", request.name},
                          {"arch", archOf(request.target)},
                          {"cuda", m_versions->assembler},
                          {"launches", json::parse(request.launches, nullptr, false)}};
    if (auto sent = m_process->pipe.send(message, deadline, &m_process->child); !sent)
        return end(sent.error(), limitSeconds);
    auto answer = m_process->pipe.receive(deadline, &m_process->child, stop);
    if (!answer)
        return end(answer.error(), limitSeconds);
    // Whatever the candidate did to the process ends with it.
    m_process.reset();
    (void)launch();
    if (const std::string error = textAt(*answer, "error"); !error.empty())
        return tritonFailure(FailureKind::Machine, ErrorCode::Internal,
                             "Triton could not be asked: " + error.substr(0, 1000));
    return std::move(*answer);
}

WorkerResult<CompileOutput> TritonCompiler::compile(const CompileRequest &request, double limitSeconds,
                                                    const std::stop_token &stop)
{
    const Deadline deadline = Deadline::in(limitSeconds);
    if (auto ready = ensureReady(stop); !ready)
        return tl::unexpected(ready.error());
    const auto reply = ask(request, limitSeconds, stop);
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
            output.launches = launchesOf(*reply, json::parse(request.launches));
        return output;
    } catch (const std::exception &) {
        return tritonFailure(FailureKind::Protocol, ErrorCode::Protocol,
                             "The process of Triton sent an answer that does not follow its protocol.");
    }
}

} // namespace klineage::gate
