// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/worker.h"

#include "core/device/worker/operations.h"
#include "core/process/framepipe.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <cstdio>

namespace klineage::gate {

namespace {

using nlohmann::json;

json failure(const Error &error)
{
    return {{"error", protocol::write(error)}};
}

/// The versions are in every cache key, and compiling nothing also warms the compilers up.
json hello(std::span<const Compiler> known)
{
    json versions = json::object();
    for (const Compiler &compiler : known) {
        const auto probe = compiler.compile({std::string(compiler.language), "\n", "probe", {}, "sm_90a"});
        versions[std::string(compiler.language)] =
            probe ? json{{"compiler", probe->compiler}} : failure(probe.error());
    }
    return {{"hello", "klineage-compiler"}, {"version", protocol::version}, {"compilers", versions}};
}

json compile(const json &request, std::span<const Compiler> known, process::SharedMemory &memory)
{
    const auto wanted = protocol::decode<protocol::Compile>(request);
    const auto output = compileBy(known, wanted);
    if (!output)
        return failure(output.error());
    if (output->binary.size() > wanted.room)
        return failure({ErrorCode::Internal,
                        "The compiled program is too large: " + std::to_string(output->binary.size())
                            + " bytes, allowed are " + std::to_string(wanted.room) + ".",
                        {}});
    if (auto mapped = memory.ensure(wanted.room); !mapped)
        return failure(mapped.error());
    std::copy(output->binary.begin(), output->binary.end(), memory.bytes().begin());
    json reply = protocol::encode(protocol::Compile::Reply{*output, output->binary.size()});
    reply["ok"] = true;
    return reply;
}

} // namespace

int runCompiler(std::span<const Compiler> known)
{
    using process::Deadline;
    process::FramePipe pipe{FileDescriptor(protocol::socketFd)};
    auto memory = process::SharedMemory::adopt(FileDescriptor(protocol::memoryFd));
    try {
        if (!pipe.send(hello(known), Deadline::in(10)))
            return 1;
        for (;;) {
            const auto request = pipe.receive(Deadline::never());
            if (!request)
                return pipe.ended() ? 0 : 1;
            json reply = compile(*request, known, memory);
            reply["id"] = request->at("id");
            if (!pipe.send(reply, Deadline::in(60)))
                return 1;
        }
    } catch (const std::exception &problem) {
        std::fprintf(stderr, "klineage-gate compile: %s\n", problem.what());
        return 1;
    }
}

} // namespace klineage::gate
