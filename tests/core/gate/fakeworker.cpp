// SPDX-License-Identifier: GPL-3.0-or-later
//
// A worker that speaks the protocol as long as its mode lets it: fakeworker MODE --backend NAME. It computes nothing.
// In the mode "memory" its buffers hold what is written to them.
#include "core/device/worker/messages.h"
#include "core/process/framepipe.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace klineage;
using nlohmann::json;
using process::Deadline;

namespace {

std::size_t allowance = SIZE_MAX; ///< bytes that are sent before the process ends

void sendRaw(const std::string &bytes)
{
    const std::size_t sent = std::min(bytes.size(), allowance);
    (void)::send(gate::protocol::socketFd, bytes.data(), sent, MSG_NOSIGNAL);
    allowance -= sent;
    if (sent < bytes.size())
        ::_exit(0);
}

[[noreturn]] void hang()
{
    for (;;)
        ::pause();
}

[[noreturn]] void flood()
{
    const std::string line(4096, 'x');
    for (;;) {
        (void)!::write(STDOUT_FILENO, line.data(), line.size());
        (void)!::write(STDERR_FILENO, line.data(), line.size());
    }
}

/// What the mode does instead of answering; returns when the mode is to answer after all.
void misbehave(const std::string &mode)
{
    if (mode == "hang")
        hang();
    if (mode == "flood")
        flood();
    if (mode == "segv") {
        ::signal(SIGSEGV, SIG_DFL); // a sanitizer would turn the signal into an exit code
        ::raise(SIGSEGV);
    }
    if (mode == "exit")
        ::_exit(3);
    if (mode == "garbage")
        sendRaw("Segmentation fault (not really)\n");
    if (mode == "cut") {
        sendRaw(process::encodeFrame({{"ok", true}, {"padding", "0123456789"}})->substr(0, 20));
        ::_exit(0);
    }
    if (mode == "stall") { // stops in the middle of a message and stays
        sendRaw(process::encodeFrame({{"ok", true}})->substr(0, 6));
        hang();
    }
    if (mode == "oversized")
        sendRaw(std::string("\xff\xff\xff\x7f", 4));
    if (mode == "not-json")
        sendRaw(std::string("\x04\x00\x00\x00{{{{", 8));
    if (mode == "any") {
        static constexpr const char *others[] = {"segv",      "exit",     "garbage", "cut",
                                                 "oversized", "not-json", "forged"};
        misbehave(others[static_cast<std::size_t>(::getpid()) % std::size(others)]);
    }
    if (mode == "extra")
        sendRaw(*process::encodeFrame({{"ok", true}}));
    if (mode == "forged")
        sendRaw(*process::encodeFrame({{"status", "correct"}, {"verdict", {{"status", "correct"}}}}));
}

/// Buffers in ordinary memory.
class Memory
{
public:
    /// Replaces the reply to an operation of memory.
    void perform(const json &request, json &reply)
    {
        const auto op = request.at("op").get<std::string>();
        if (op == "allocate") {
            m_buffers[++m_last].resize(request.at("bytes").get<std::size_t>());
            reply = {{"ok", true}, {"buffer", m_last}};
        } else if (op == "upload" || op == "download") {
            const auto offset = request.at("offset").get<std::size_t>();
            auto &buffer = m_buffers.at(request.at("buffer").get<gate::BufferId>());
            const auto bytes = request.at("bytes").get<std::size_t>();
            if (bytes > buffer.size() || !m_shared.ensure(offset + bytes))
                ::_exit(4);
            std::byte *shared = m_shared.bytes().data() + offset;
            std::memcpy(op == "upload" ? buffer.data() : shared, op == "upload" ? shared : buffer.data(),
                        bytes);
        } else if (op == "copy") {
            for (const gate::CopyRange &range : gate::protocol::readRanges(request.at("ranges")))
                copy(range);
        }
    }

private:
    void copy(const gate::CopyRange &range)
    {
        auto &to = m_buffers.at(range.to);
        const auto &from = m_buffers.at(range.from);
        if (range.toOffset + range.bytes > to.size() || range.fromOffset + range.bytes > from.size())
            ::_exit(4); // outside: the test sees a dead worker
        std::memcpy(to.data() + range.toOffset, from.data() + range.fromOffset, range.bytes);
    }

    process::SharedMemory m_shared = process::SharedMemory::adopt(FileDescriptor(gate::protocol::memoryFd));
    std::map<gate::BufferId, std::vector<std::byte>> m_buffers;
    gate::BufferId m_last = 0;
};

json reply(const std::string &op)
{
    static int next = 1;
    if (op == "load")
        return {
            {"ok", true},
            {"module", next++},
            {"compile", {{"ok", true}, {"log", ""}, {"metrics", json::array()}, {"compiler", "fake 1.0"}}}};
    if (op == "allocate")
        return {{"ok", true}, {"buffer", next++}};
    if (op == "add_plan" || op == "add_reference")
        return {{"ok", true}, {"subject", next++}};
    if (op == "seal")
        return {{"ok", true}, {"sealed", true}};
    return {{"ok", true}};
}

} // namespace

int main(int argc, char **argv)
{
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode.rfind("hello-", 0) == 0)
        misbehave(mode.substr(6));
    process::FramePipe pipe{FileDescriptor(gate::protocol::socketFd)};
    const json hello = {
        {"hello", "klineage-worker"},
        {"version", mode == "old" ? 0 : gate::protocol::version},
        {"facts", {{"sm_count", 2}, {"warp_size", 8}, {"max_shared", 65536}}},
        {"environment", {{"platform", "fake"}, {"device", "fake"}, {"facts", json::object()}}},
        {"cache_bytes", 1000}};
    Memory memory;
    if (mode.rfind("truncate=", 0) == 0)
        allowance = std::stoul(mode.substr(9));
    sendRaw(*process::encodeFrame(hello));
    json previous;
    const std::string place = mode.find('@') == std::string::npos ? "run" : mode.substr(mode.find('@') + 1);
    for (;;) {
        const auto request = pipe.receive(Deadline::never());
        if (!request)
            return 0;
        const auto op = request->at("op").get<std::string>();
        if (op == place)
            misbehave(mode.substr(0, mode.find('@')));
        json answer = reply(op);
        if (mode == "memory")
            memory.perform(*request, answer);
        answer["id"] = op == place && mode.rfind("replay", 0) == 0 ? previous : request->at("id");
        previous = request->at("id");
        sendRaw(*process::encodeFrame(answer));
        if (op == place && mode.rfind("late", 0) == 0)
            sendRaw(*process::encodeFrame(answer));
    }
}
