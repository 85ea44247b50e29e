// SPDX-License-Identifier: GPL-3.0-or-later
// Connections that break, fall silent or never end, and heads that say what is not so. A request that was sent counts in full when
// nothing came of it; a reply that is whole is kept, whatever became of the connection then.
#include "tests/core/llm/modelfaults.h"

#include <QByteArray>

using namespace klineage;
using namespace klineage::llm;
using namespace faults;

namespace {

const std::string cutOff = "The connection failed: ";
const std::string longer = "longer than any";

std::string head(const std::string &headers)
{
    return "HTTP/1.1 200 Said\r\n" + headers + "\r\n";
}

std::string ofLength(const std::string &length, const std::string &body)
{
    return head("Content-Length: " + length + "\r\n") + body;
}

std::string longerBy(int bytes, const std::string &body)
{
    return ofLength(std::to_string(static_cast<int>(body.size()) + bytes), body);
}

std::string oneChunk(const std::string &body)
{
    return QByteArray::number(static_cast<qulonglong>(body.size()), 16).toStdString() + "\r\n" + body
           + "\r\n";
}

/// In pieces of 50 bytes, without the last one, which is empty.
std::string chunked(const std::string &body)
{
    std::string all = head("Transfer-Encoding: chunked\r\n");
    for (std::size_t at = 0; at < body.size(); at += 50)
        all += oneChunk(body.substr(at, 50));
    return all;
}

/// RFC 1950, which HTTP calls deflate.
std::string deflated(const std::string &body)
{
    return qCompress(QByteArray::fromStdString(body)).mid(4).toStdString();
}

/// RFC 1952: the same without its frame, in another one.
std::string gzipped(const std::string &body)
{
    const auto littleEndian = [](std::uint32_t value) {
        std::string bytes;
        for (int shift = 0; shift < 32; shift += 8)
            bytes += static_cast<char>(value >> shift & 0xff);
        return bytes;
    };
    std::uint32_t check = 0xffffffff;
    for (const char c : body) {
        check ^= static_cast<unsigned char>(c);
        for (int bit = 0; bit < 8; ++bit)
            check = (check >> 1) ^ (check & 1 ? 0xedb88320 : 0);
    }
    const std::string framed = deflated(body);
    return std::string("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10) + framed.substr(2, framed.size() - 6)
           + littleEndian(~check) + littleEndian(static_cast<std::uint32_t>(body.size()));
}

std::string packed(const std::string &how, const std::string &body)
{
    return ofLength(std::to_string(body.size()) + "\r\nContent-Encoding: " + how, body);
}

void addBrokenConnections(FaultTable &table)
{
    Circumstances deaf;
    deaf.nobodyListens = true;
    Due unheard = refusedThrice(ErrorCode::Protocol, "It was sent 3 times");
    unheard.requests = 0;
    table.both(
        "nobody listens", [](bool) { return ServerAnswer(); }, unheard, deaf);
    ServerAnswer nothing;
    nothing.status = 0;
    table.both(
        "closed without a word", [=](bool) { return nothing; }, broken(ErrorCode::Protocol, cutOff));
    ServerAnswer reset = nothing;
    reset.reset = true;
    table.both(
        "reset without a word", [=](bool) { return reset; }, broken(ErrorCode::Protocol, cutOff));
    table.both(
        "reset in the stream",
        [](bool anthropic) {
            ServerAnswer answer = answered(sound(anthropic));
            answer.dropAfter = answer.body.size() / 3;
            answer.reset = true;
            return answer;
        },
        broken(ErrorCode::Protocol, cutOff));
    table.both(
        "broken once", [](bool anthropic) { return sentRaw(upTo(head("") + sound(anthropic), "345")); },
        [] {
            Due due = keptInFull();
            due.requests = 2;
            due.counted = soundUsage;
            due.says = "It may have been charged and counts in full; asked again in ";
            return due;
        }(),
        [] {
            Circumstances when;
            when.times = 1;
            return when;
        }());
    table.both(
        "no HTTP", [](bool) { return sentRaw("SSH-2.0-OpenSSH_9.2p1\r\n"); },
        broken(ErrorCode::Protocol, cutOff));
    table.both(
        "a status that is no number", [](bool) { return sentRaw("HTTP/1.1 OK\r\n\r\n"); },
        broken(ErrorCode::Protocol, ""));
}

void addSilence(FaultTable &table)
{
    Circumstances silent;
    silent.idleSeconds = 0.1;
    const Due late = broken(ErrorCode::Timeout, "The server has been silent for too long.");
    ServerAnswer speechless = sentRaw("");
    speechless.stallAfter = 0;
    table.both(
        "silent from the beginning", [=](bool) { return speechless; }, late, silent);
    for (const std::size_t bytes : {0, 300}) {
        table.both(
            "silent after " + std::to_string(bytes) + " bytes",
            [=](bool anthropic) {
                ServerAnswer answer = answered(sound(anthropic));
                answer.stallAfter = bytes;
                return answer;
            },
            late, silent);
    }
    Circumstances stopped;
    stopped.stop = Circumstances::Stop::WhenSeen;
    Due inFull = refused(ErrorCode::Cancelled, "The request was stopped.");
    inFull.inFull = 1;
    table.both(
        "silent, and a person stops it", [=](bool) { return speechless; }, inFull, stopped);
    stopped.stop = Circumstances::Stop::WhenAskedAgain;
    table.both(
        "refused, and a person stops it before it is asked again", [](bool) { return answered("", 500); },
        refused(ErrorCode::Cancelled, "The request was stopped while it waited to be sent again."), stopped);
    table.both(
        "silent after a whole reply",
        [](bool anthropic) {
            ServerAnswer answer = answered(sound(anthropic));
            answer.stallAfter = answer.body.size();
            answer.body += "never sent";
            return answer;
        },
        kept());
}

void addEndlessness(FaultTable &table)
{
    Circumstances bounded;
    bounded.totalSeconds = 0.2;
    const auto endless = [](const std::string &before, const std::string &again) {
        ServerAnswer answer = sentRaw(before);
        answer.endless = again;
        return answer;
    };
    const auto always = [](const ServerAnswer &answer) { return [answer](bool) { return answer; }; };
    ServerAnswer slow = endless(head(""), ": still here\n\n");
    slow.endlessEveryMs = 5;
    table.both("signs of life for ever", always(slow),
               broken(ErrorCode::Timeout, "The reply takes longer than it may."), bounded);
    table.both("comments for ever", always(endless(head(""), ":" + std::string(10'000, 'x') + "\n")),
               broken(ErrorCode::Protocol, longer));
    table.both("blank lines for ever", always(endless(head(""), std::string(10'000, '\n'))),
               broken(ErrorCode::Protocol, longer));
    table.both("an event for ever", always(endless(head("") + "data: ", std::string(10'000, 'x'))),
               broken(ErrorCode::Protocol, "An event of the stream is longer than"));
    table.both("an object for ever", always(endless(head("") + "{\"a\":", std::string(10'000, '['))),
               broken(ErrorCode::Protocol, longer));
    table.both("headers for ever", always(endless("HTTP/1.1 200 Said\r\n", "X-More: and more of it\r\n")),
               broken(ErrorCode::Protocol, ""));
    table.both("a header for ever", always(endless("HTTP/1.1 200 Said\r\nX-More: ", std::string(1'000, 'x'))),
               broken(ErrorCode::Protocol, ""));
    table.both(
        "text for ever",
        [&](bool anthropic) {
            const std::string piece(10'000, 'x');
            const std::string begun = upTo(sound(anthropic), "345");
            const std::size_t last = begun.rfind("data: ");
            const std::string rest =
                anthropic ? R"(","type":"text_delta"},"type":"content_block_delta"})" : R"("}}]})";
            const std::string event = begun.substr(last) + piece + rest + "\n\n";
            return endless(head("") + begun.substr(0, last), event);
        },
        broken(ErrorCode::Protocol, "The reply is longer than 2 MiB."));
}

void addWrongHeads(FaultTable &table)
{
    const auto raw = [&](const std::string &name, const std::function<std::string(bool)> &make,
                         const Due &due) {
        table.both(
            name, [make](bool anthropic) { return sentRaw(make(anthropic)); }, due);
    };
    raw(
        "a length that is too long", [](bool a) { return longerBy(1000, sound(a)); }, kept());
    raw(
        "a length that is too long, not streamed", [](bool a) { return longerBy(1000, soundWhole(a)); },
        kept());
    raw(
        "a length that is too short", [](bool a) { return ofLength("300", sound(a)); },
        broken(ErrorCode::Protocol, "ended its answer before the reply was whole."));
    raw(
        "a length of nothing", [](bool a) { return ofLength("0", sound(a)); },
        broken(ErrorCode::Protocol, "ended its answer before the reply was whole."));
    raw(
        "a length that is no length of anything",
        [](bool a) { return ofLength("99999999999999999999999999", sound(a)); }, kept());
    for (const char *length : {"-7", "many"})
        raw(
            std::string("a length of ") + length, [=](bool a) { return ofLength(length, sound(a)); },
            broken(ErrorCode::Protocol, cutOff));
    raw(
        "no length", [](bool a) { return head("") + sound(a); }, kept());
    raw(
        "a type that is wrong", [](bool a) { return head("Content-Type: text/html\r\n") + sound(a); },
        kept());
    raw(
        "chunks without the last", [](bool a) { return chunked(sound(a)); }, kept());
    raw(
        "half a chunk", [](bool a) { return chunked(sound(a)).substr(0, 300); },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "half a chunk's head", [](bool a) { return chunked(upTo(sound(a), "345")) + "3"; },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "a chunk's head that is none",
        [](bool a) { return chunked(upTo(sound(a), "345")) + "many\r\n" + sound(a); },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "a chunk longer than it is",
        [](bool a) { return chunked(upTo(sound(a), "345")) + "fffffff\r\ndata"; },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "gzip, not asked for", [](bool a) { return packed("gzip", gzipped(sound(a))); }, kept());
    raw(
        "deflate, not asked for", [](bool a) { return packed("deflate", deflated(sound(a))); }, kept());
    raw(
        "gzip, not asked for, not streamed", [](bool a) { return packed("gzip", gzipped(soundWhole(a))); },
        kept());
    raw(
        "gzip that is none", [](bool a) { return packed("gzip", sound(a)); },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "gzip that is cut",
        [](bool a) {
            const std::string whole = gzipped(sound(a));
            return packed("gzip", whole.substr(0, whole.size() / 3));
        },
        broken(ErrorCode::Protocol, ""));
    raw(
        "packed nobody knows how", [](bool a) { return packed("zipper", sound(a)); },
        broken(ErrorCode::Protocol, cutOff));
    raw(
        "deflate of more than any reply",
        [](bool) { return packed("deflate", deflated(std::string(9'000'000, '\n'))); },
        broken(ErrorCode::Protocol, longer));
    raw(
        "an id that is cut in the key",
        [](bool a) { return head("request-id: " + std::string(180, 'x') + key + "\r\n") + sound(a); },
        kept());
}

} // namespace

void addFaultsOfConnections(FaultTable &table)
{
    addBrokenConnections(table);
    addSilence(table);
    addEndlessness(table);
    addWrongHeads(table);
}
