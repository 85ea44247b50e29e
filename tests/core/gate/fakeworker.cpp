// SPDX-License-Identifier: GPL-3.0-or-later
//
// A worker that speaks the protocol as long as its mode lets it: fakeworker MODE --backend NAME. It computes nothing.
// In the mode "memory" its buffers hold what is written to them.
#include "core/device/opencl/scrubkernel.h"
#include "core/device/worker/answering.h"
#include "core/device/worker/operations.h"
#include "core/process/framepipe.h"
#include "core/process/sharedmemory.h"

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <map>
#include <poll.h>
#include <string>
#include <sys/socket.h>
#include <unistd.h>

using namespace klineage;
using namespace klineage::gate::protocol;
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
        (void)::poll(nullptr, 0,
                     -1); // pause() is refused where a worker is confined, and would be tried again at once
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

template <typename Reply>
json accepted(const Reply &reply)
{
    json out = encode(reply);
    out["ok"] = true;
    return out;
}

/// Memory of one buffer. Whoever reaches where there is none sees a dead worker, as on a device.
class Pages
{
public:
    void add(std::size_t place, std::size_t bytes) { m_places[place].resize(bytes); }
    std::byte *at(std::size_t offset, std::size_t bytes)
    {
        auto place = m_places.upper_bound(offset);
        if (place == m_places.begin())
            ::_exit(4);
        --place;
        if (bytes > place->second.size() || offset - place->first > place->second.size() - bytes)
            ::_exit(4);
        return place->second.data() + (offset - place->first);
    }

private:
    std::map<std::size_t, std::vector<std::byte>> m_places;
};

/// Buffers in ordinary memory.
class Memory
{
public:
    /// Replaces the reply to an operation of memory.
    void answer(const json &request, json &reply)
    {
        const auto op = request.at("op").get<std::string>();
        if (op == Allocate::name) {
            m_buffers[++m_last].add(0, decode<Allocate>(request).bytes);
            reply = accepted(NewBuffer{m_last});
        } else if (op == Scatter::name) {
            const auto scatter = decode<Scatter>(request);
            ++m_last;
            for (const std::size_t place : scatter.places)
                m_buffers[m_last].add(place, scatter.placeBytes);
            reply = accepted(NewBuffer{m_last});
        } else if (op == Upload::name) {
            const auto upload = decode<Upload>(request);
            std::memcpy(m_buffers.at(upload.buffer).at(upload.offset, upload.from.bytes), shared(upload.from),
                        upload.from.bytes);
        } else if (op == Download::name) {
            const auto download = decode<Download>(request);
            std::memcpy(shared(download.to),
                        m_buffers.at(download.buffer).at(download.offset, download.to.bytes),
                        download.to.bytes);
        } else if (op == Copy::name) {
            for (const gate::CopyRange &range : decode<Copy>(request).ranges)
                copy(range);
        }
    }

private:
    std::byte *shared(const Region &region)
    {
        if (!m_shared.ensure(region.offset + region.bytes))
            ::_exit(4);
        return m_shared.bytes().data() + region.offset;
    }
    void copy(const gate::CopyRange &range)
    {
        const std::span to(m_buffers.at(range.to).at(range.toOffset, range.bytes), range.bytes);
        const std::span<const std::byte> from(m_buffers.at(range.from).at(range.fromOffset, range.bytes),
                                              range.bytes);
        if (range.with == 0) {
            std::memcpy(to.data(), from.data(), range.bytes);
            return;
        }
        const std::span<const std::byte> with(m_buffers.at(range.with).at(range.fromOffset, range.bytes),
                                              range.bytes);
        const std::size_t elements = range.bytes / klineage::kernel::sizeOf(range.blend.dtype);
        gate::blendPieces(range.blend, from, with, to, 0, gate::pieceCount(range.blend, elements));
    }

    process::SharedMemory m_shared = process::SharedMemory::adopt(FileDescriptor(gate::protocol::memoryFd));
    std::map<gate::BufferId, Pages> m_buffers;
    gate::BufferId m_last = 0;
};

json reply(const std::string &op)
{
    static std::uint32_t next = 1;
    if (op == Load::name)
        return accepted(Load::Reply{next++, {true, {}, {}, {}, "fake 1.0"}, {}});
    if (op == Allocate::name || op == Scatter::name)
        return accepted(NewBuffer{next++});
    if (op == AddPlan::name || op == AddReference::name)
        return accepted(NewSubject{next++});
    if (op == Share::name)
        return failure({ErrorCode::Unavailable, "Nothing is shared here.", {}});
    if (op == Seal::name)
        return accepted(Seal::Reply{true});
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
        // What the gate loads of its own comes first, with a limit of its own.
        const bool own = op == Load::name && request->at("source") == klineage::gate::opencl::scrubSource;
        if (op == place && !own)
            misbehave(mode.substr(0, mode.find('@')));
        json answer = reply(op);
        if (mode == "memory")
            memory.answer(*request, answer);
        answer["id"] = op == place && mode.rfind("replay", 0) == 0 ? previous : request->at("id");
        previous = request->at("id");
        sendRaw(*process::encodeFrame(answer));
        if (op == place && mode.rfind("late", 0) == 0)
            sendRaw(*process::encodeFrame(answer));
    }
}
