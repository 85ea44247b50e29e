// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/gate/triton/tilelangcompiler.h"

namespace klineage::gate {

using nlohmann::json;
using process::Deadline;

namespace {

constexpr const char *tilelangScript =
#include "tilelangscript.inc"
    ;

} // namespace

std::string TilelangVersions::text() const
{
    return "tilelang " + tilelang + ", Python " + python;
}

TilelangCompiler::TilelangCompiler(LanguageProcess *cuda)
    : PythonCompiler({"TileLang", "tilelang", tilelangScript})
    , m_cuda(cuda)
{}

WorkerResult<TilelangVersions> TilelangCompiler::versions(const std::stop_token &stop)
{
    const auto hello = introduction(stop);
    if (!hello)
        return tl::unexpected(hello.error());
    return TilelangVersions{textAt(*hello, "tilelang"), textAt(*hello, "python")};
}

WorkerResult<std::string> TilelangCompiler::version(const std::stop_token &stop)
{
    const auto found = versions(stop);
    if (!found)
        return tl::unexpected(found.error());
    const auto cuda = m_cuda->version(stop);
    if (!cuda)
        return cuda;
    return found->text() + ", " + *cuda;
}

WorkerResult<CompileOutput> TilelangCompiler::compile(const CompileRequest &request, double limitSeconds,
                                                      const std::stop_token &stop)
{
    const Deadline deadline = Deadline::in(limitSeconds);
    const auto compiler = version(stop);
    if (!compiler)
        return tl::unexpected(compiler.error());
    const json launches = json::parse(request.launches, nullptr, false);
    const auto reply = ask({{"source", request.source},
                            {"name", request.name},
                            {"target", request.target},
                            {"launches", launches}},
                           Deadline::in(limitSeconds), stop);
    if (!reply)
        return tl::unexpected(reply.error());
    CompileOutput output;
    output.compiler = *compiler;
    if (output.log = textAt(*reply, "log"); !output.log.empty())
        return output;
    try {
        auto compiled = m_cuda->compile({"cuda",
                                         textAt(*reply, "cuda"),
                                         request.name,
                                         {},
                                         request.target,
                                         {},
                                         reply->at("headers").get<HeaderTexts>()},
                                        deadline.secondsLeft(), stop);
        if (!compiled)
            return compiled;
        compiled->compiler = *compiler;
        if (compiled->ok)
            compiled->launches = launchesOf(*reply, launches);
        return compiled;
    } catch (const std::exception &) {
        return badAnswer();
    }
}

} // namespace klineage::gate
