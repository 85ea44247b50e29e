// SPDX-License-Identifier: GPL-3.0-or-later
// The bytes of a stream: where it is cut, how its events are written, and what is in their place. A stream that was cut is no reply
// before it has said why the reply ends, and one from there on.
#include "tests/core/llm/modelfaults.h"

using namespace klineage;
using namespace klineage::llm;
using namespace faults;

namespace {

using Change = std::function<std::string(bool anthropic, const std::string &stream)>;

const Due early = broken(ErrorCode::Protocol, "The server ended its answer before the reply was whole.");
const Due noReply = broken(ErrorCode::Protocol, "The server's answer is neither a stream nor a whole reply.");

/// Of a sound stream.
void streams(FaultTable &table, const std::string &name, const Change &change, const Due &due)
{
    table.both(
        name, [=](bool anthropic) { return answered(change(anthropic, sound(anthropic))); }, due);
}

void bodies(FaultTable &table, const std::string &name, const std::string &body, const Due &due)
{
    table.both(
        name, [=](bool) { return answered(body); }, due);
}

std::string reasonOf(bool anthropic)
{
    return anthropic ? R"("stop_reason":"end_turn"})" : R"("finish_reason":"stop")";
}

/// All until the end of the event that has this in it.
std::string untilEvent(const std::string &stream, const std::string &part)
{
    return upTo(stream, part) + upTo(stream.substr(stream.find(part) + part.size()), "\n\n");
}

void addCuts(FaultTable &table)
{
    const std::string euro = "\xe2\x82\xac";
    streams(
        table, "a character in bytes",
        [=](bool, const std::string &stream) { return changed(stream, "345", euro); },
        kept("012" + euro + "6789"));
    streams(
        table, "cut in a character",
        [=](bool, const std::string &stream) {
            return upTo(changed(stream, "345", euro), euro.substr(0, 2));
        },
        early);
    streams(
        table, "cut in the name of a field",
        [](bool, const std::string &stream) { return untilEvent(stream, "345") + "dat"; }, early);
    streams(
        table, "cut in a text", [](bool, const std::string &stream) { return upTo(stream, "345"); }, early);
    streams(
        table, "cut between two events",
        [](bool, const std::string &stream) { return untilEvent(stream, "345"); }, early);
    streams(
        table, "cut in the reason",
        [](bool a, const std::string &stream) { return stream.substr(0, stream.find(reasonOf(a)) + 10); },
        early);
    streams(
        table, "cut after the reason, in its event",
        [](bool a, const std::string &stream) { return upTo(stream, reasonOf(a)); }, early);
    table.anthropic("cut after the reason", answered(untilEvent(sound(true), reasonOf(true))), kept());
    table.openAi("cut after the reason, before the usage",
                 answered(untilEvent(sound(false), reasonOf(false))), keptInFull());
    streams(
        table, "cut before its end is said",
        [](bool a, const std::string &stream) {
            return stream.substr(0, stream.find(a ? "event: message_stop" : "data: [DONE]"));
        },
        kept());
    streams(
        table, "cut in the end that is said",
        [](bool, const std::string &stream) { return stream.substr(0, stream.size() - 8); }, kept());
    streams(
        table, "no blank line at its end",
        [](bool, const std::string &stream) { return stream.substr(0, stream.size() - 2); }, kept());
    streams(
        table, "an error at its end, without a blank line",
        [](bool, const std::string &stream) {
            return untilEvent(stream, "345") + "data: " + errorBody("full", "No room");
        },
        broken(ErrorCode::Unavailable, "The server broke off its reply (full): No room."));
}

void addSpellings(FaultTable &table)
{
    const auto each = [&](const std::string &name, const std::string &from, const std::string &to) {
        streams(
            table, name, [=](bool, const std::string &stream) { return changed(stream, from, to); }, kept());
    };
    each("CRLF", "\n", "\r\n");
    each("CR", "\n", "\r");
    each("comments", "\n\n", "\n\n: still here\n\n:\n\n");
    each("comments in events", "data: ", ": still here\ndata: ");
    each("several lines of data", "{\"", "{\ndata: \"");
    each("ids and times", "data: ", "id: 7\nretry: 3600000\nretry: soon\ndata: ");
    each("fields that nobody knows", "data: ", "date: 7\ndata7: {}\n{\nnothing\ndata: ");
    each("no blank after the colon", "data: ", "data:");
    each("events without data", "\n\n", "\n\nevent: error\n\nevent\n\n");
    each("many blank lines", "\n\n", "\n\n\n\n\n");
    each("events of other names", "data: ", "event: error\ndata: ");
    streams(
        table, "a byte order mark", [](bool, const std::string &stream) { return "\xef\xbb\xbf" + stream; },
        kept());
    streams(
        table, "more after its end",
        [](bool, const std::string &stream) { return stream + "data: {{{\n\n" + stream; }, kept());
    table.both(
        "a byte at a time",
        [](bool anthropic) {
            ServerAnswer answer = answered("\xef\xbb\xbf\r\n" + changed(sound(anthropic), "\n", "\r\n"));
            answer.pieceBytes = 1;
            return answer;
        },
        kept());
    table.openAi("blanks behind [DONE]", answered(changed(sound(false), "[DONE]", "[DONE] \t")), kept());
}

void addEvents(FaultTable &table)
{
    const auto amid = [&](const std::string &name, const std::string &more, const Due &due) {
        streams(
            table, name, [=](bool, const std::string &stream) { return with(stream, more); }, due);
    };
    const Due brokenOff = broken(ErrorCode::Unavailable, "The server broke off its reply (full): No room.");
    amid("an error amid it", "event: error\ndata: " + errorBody("full", "No room") + "\n\n", brokenOff);
    amid("an error in words", "data: {\"error\":\"No room\"}\n\n",
         broken(ErrorCode::Unavailable, "The server broke off its reply (error): No room."));
    amid("an error of the older kind",
         R"(data: {"object":"error","message":"No room","type":"full"})"
         "\n\n",
         broken(ErrorCode::Unavailable, "No room."));
    amid("an error that repeats the key, cut in it",
         "data: " + errorBody("full", std::string(1980, 'x') + key) + "\n\n",
         broken(ErrorCode::Unavailable, "The server broke off its reply (full): xxx"));
    amid("errors that are none",
         "data: {\"error\":null}\n\ndata: {\"error\":\"\"}\n\ndata: {\"error\":{}}\n\n", kept());
    amid("events of blanks", "data:\n\ndata: \n\ndata:\ndata:\n\n", kept());
    amid("events that nobody knows", "event: news\ndata: {\"type\":\"news\",\"news\":[7]}\n\n", kept());
    const auto nested = [](std::size_t depth) {
        return "data: {\"type\":\"news\",\"news\":" + std::string(depth, '[') + std::string(depth, ']')
               + "}\n\n";
    };
    amid("an event that is nested", nested(200), kept());
    amid("an event that is nested too deeply", nested(100'000),
         broken(ErrorCode::Protocol, "is no JSON object."));
    for (const char *other : {"{{{", "[]", "7", "\"text\"", "null", "<html>"})
        amid(std::string("an event that is '") + other + "'", std::string("data: ") + other + "\n\n",
             broken(ErrorCode::Protocol, "is no JSON object."));
    amid("a NUL in place of an event", std::string("data: \0\n\n", 9),
         broken(ErrorCode::Protocol, "is no JSON object."));
    streams(
        table, "an error in place of its end",
        [](bool, const std::string &stream) {
            return withAtEnd(stream, "data: " + errorBody("full", "No room") + "\n\n");
        },
        brokenOff);
    streams(
        table, "a model that was not asked for",
        [](bool, const std::string &stream) { return changed(stream, "model-1-served", "cheap " + key); },
        kept());
    streams(
        table, "a model that is no name",
        [](bool, const std::string &stream) { return changed(stream, "\"model-1-served\"", "[7]"); }, kept());
}

void addOtherBodies(FaultTable &table)
{
    bodies(table, "nothing", "", early);
    bodies(table, "blanks", " \r\n\r\n\t", early);
    bodies(table, "a part of a byte order mark", "\xef\xbb", early);
    bodies(table, "words", "Welcome! " + key, early);
    bodies(table, "comments only", ": still here\n\n", early);
    bodies(table, "a NUL", std::string("\0", 1), early);
    bodies(table, "a page", "<!DOCTYPE html><html>" + key, noReply);
    bodies(table, "an object of something else", R"({"status":"fine"})", noReply);
    bodies(table, "a list", "[]", noReply);
    bodies(table, "objects a line", "{\"response\":\"0\"}\n{\"response\":\"1\",\"done\":true}\n", noReply);
    bodies(table, "an object that is nested deeply", "{\"a\":" + std::string(3'000'000, '['), noReply);
    bodies(table, "a page that ends in the key where it is cut", "<html>" + std::string(474, 'x') + key,
           noReply);
    bodies(table, "an error with a status of success", errorBody("full", "No room"),
           broken(ErrorCode::Unavailable, "The server answered with an error (full): No room."));
    table.both(
        "not streamed", [](bool a) { return answered(soundWhole(a)); }, kept());
    table.both(
        "not streamed, behind a byte order mark and blanks",
        [](bool a) {
            ServerAnswer answer = answered("\xef\xbb\xbf\r\n " + soundWhole(a) + "\r\n");
            answer.pieceBytes = 1;
            return answer;
        },
        kept());
    table.both(
        "not streamed, cut", [](bool a) { return answered(soundWhole(a).substr(0, 60)); }, noReply);
    table.both(
        "not streamed, cut in the usage",
        [](bool a) {
            const std::string whole = soundWhole(a);
            return answered(whole.substr(0, whole.size() - 10));
        },
        noReply);
    table.both(
        "not streamed, followed by more", [](bool a) { return answered(soundWhole(a) + "{}"); }, noReply);
    const auto half = [&](const std::string &name, const std::string &content) {
        table.both(
            "not streamed, half a character" + name, [=](bool a) { return answered(soundWhole(a, content)); },
            kept("a \xef\xbf\xbd half"));
    };
    half("", "\"a \xe2\x82 half\"");
    half(", escaped", R"("a \ud83d half")");
}

} // namespace

void addFaultsOfStreams(FaultTable &table)
{
    addCuts(table);
    addSpellings(table);
    addEvents(table);
    addOtherBodies(table);
}
