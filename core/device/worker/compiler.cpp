// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/worker/worker.h"

#include "core/device/worker/messages.h"
#include "core/process/framepipe.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <cstdio>

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
            probe ? json{{"compiler", probe->compiler}} : json{{"error", protocol::write(probe.error())}};
    }
    return {{"hello", "klineage-compiler"}, {"version", protocol::version}, {"compilers", versions}};
}

json compile(const json &request, std::span<const Compiler> known, process::SharedMemory &memory)
{
    const auto output =
        compileBy(known, {request.at("language").get<std::string>(), request.at("source").get<std::string>(),
                          request.at("name").get<std::string>(),
                          request.at("tunables").get<std::map<std::string, std::int64_t>>(),
                          request.at("target").get<std::string>()});
    if (!output)
        return {{"error", protocol::write(output.error())}};
    const auto room = request.at("room").get<std::size_t>();
    if (output->binary.size() > room)
        return {{"error", protocol::write(Error{ErrorCode::Internal,
                                                "The compiled program is too large: "
                                                    + std::to_string(output->binary.size())
                                                    + " bytes, allowed are " + std::to_string(room) + ".",
                                                {}})}};
    if (auto mapped = memory.ensure(room); !mapped)
        return {{"error", protocol::write(mapped.error())}};
    std::copy(output->binary.begin(), output->binary.end(), memory.bytes().begin());
    return {{"ok", true}, {"compile", protocol::write(*output)}, {"bytes", output->binary.size()}};
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
