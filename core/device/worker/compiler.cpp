// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/worker.h"

#include "core/device/worker/answering.h"
#include "core/device/worker/operations.h"
#include "core/process/sharedmemory.h"

#include <algorithm>

namespace klineage::gate {

namespace {

using nlohmann::json;

/// The versions are in every cache key, and compiling nothing also warms the compilers up.
json hello(std::span<const Compiler> known)
{
    json versions = json::object();
    for (const Compiler &compiler : known) {
        const auto probe = compiler.compile({std::string(compiler.language), "\n", "probe", {}, "sm_90a"});
        versions[std::string(compiler.language)] =
            probe ? json{{"compiler", probe->compiler}} : protocol::failure(probe.error());
    }
    return {{"hello", "klineage-compiler"}, {"version", protocol::version}, {"compilers", versions}};
}

json compile(const json &request, std::span<const Compiler> known, process::SharedMemory &memory)
{
    const auto wanted = protocol::decode<protocol::Compile>(request);
    const auto output = compileBy(known, wanted);
    if (!output)
        return protocol::failure(output.error());
    if (output->binary.size() > wanted.room)
        return protocol::failure(
            {ErrorCode::Internal,
             "The compiled program is too large: " + std::to_string(output->binary.size())
                 + " bytes, allowed are " + std::to_string(wanted.room) + ".",
             {}});
    if (auto mapped = memory.ensure(wanted.room); !mapped)
        return protocol::failure(mapped.error());
    std::copy(output->binary.begin(), output->binary.end(), memory.bytes().begin());
    json reply = protocol::encode(protocol::Compile::Reply{*output, output->binary.size()});
    reply["ok"] = true;
    return reply;
}

} // namespace

int runCompiler(std::span<const Compiler> known)
{
    process::FramePipe pipe{FileDescriptor(protocol::socketFd)};
    auto memory = process::SharedMemory::adopt(FileDescriptor(protocol::memoryFd));
    return protocol::answerRequests(pipe, "compile", hello(known),
                                    [&](const json &request) { return compile(request, known, memory); });
}

} // namespace klineage::gate
