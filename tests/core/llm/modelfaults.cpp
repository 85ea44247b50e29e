// SPDX-License-Identifier: GPL-3.0-or-later
#include "tests/core/llm/modelfaults.h"

#include <QtGlobal>

using namespace klineage;
using namespace klineage::llm;

void FaultTable::one(bool anthropic, const std::string &name, const ServerAnswer &answer, const Due &due,
                     const Circumstances &when)
{
    rows.push_back({(anthropic ? "anthropic: " : "openai: ") + name, anthropic, answer, due, when});
}

void FaultTable::both(const std::string &name, const Make &make, const Due &due, const Circumstances &when)
{
    for (const bool anthropic : {true, false})
        one(anthropic, name, make(anthropic), due, when);
}

void FaultTable::openAi(const std::string &name, const ServerAnswer &answer, const Due &due,
                        const Circumstances &when)
{
    one(false, name, answer, due, when);
}

void FaultTable::anthropic(const std::string &name, const ServerAnswer &answer, const Due &due,
                           const Circumstances &when)
{
    one(true, name, answer, due, when);
}

namespace faults {

Due kept(const std::string &text, StopReason stop)
{
    Due due;
    due.text = text;
    due.stop = stop;
    due.counted = soundUsage;
    return due;
}

Due keptInFull(const std::string &text, StopReason stop)
{
    Due due;
    due.text = text;
    due.stop = stop;
    due.inFull = 1;
    return due;
}

Due keptAfter(int refusals, const std::string &says)
{
    Due due = kept();
    due.requests = refusals + 1;
    due.says = says;
    return due;
}

Due refused(ErrorCode code, const std::string &says)
{
    Due due;
    due.code = code;
    due.says = says;
    return due;
}

Due refusedThrice(ErrorCode code, const std::string &says)
{
    Due due = refused(code, says);
    due.requests = 3;
    return due;
}

Due broken(ErrorCode code, const std::string &says)
{
    Due due = refusedThrice(code, says);
    due.inFull = 3;
    return due;
}

ServerAnswer answered(const std::string &body, int status)
{
    ServerAnswer answer;
    answer.status = status;
    answer.body = body;
    answer.headers = {{"request-id", "of " + key}};
    return answer;
}

ServerAnswer sentRaw(const std::string &bytes)
{
    ServerAnswer answer;
    answer.raw = bytes;
    return answer;
}

std::string sound(bool anthropic)
{
    return anthropic ? anthropicStream(soundText, soundUsage) : openAiStream(soundText, soundUsage);
}

std::string soundWhole(bool anthropic, const std::string &content)
{
    if (anthropic)
        return R"({"type":"message","id":"c1","model":"m","content":)" + content
               + R"(,"stop_reason":"end_turn",)"
                 R"("usage":{"input_tokens":120,"cache_read_input_tokens":30,"output_tokens":40}})";
    return R"({"id":"c1","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":)"
           + content
           + R"(},"finish_reason":"stop"}],"usage":{"prompt_tokens":150,"completion_tokens":40,)"
             R"("prompt_tokens_details":{"cached_tokens":30}}})";
}

std::string errorBody(const std::string &type, const std::string &message)
{
    return nlohmann::json{{"type", "error"}, {"error", {{"type", type}, {"message", message}}}}.dump();
}

std::string changed(std::string text, const std::string &from, const std::string &to)
{
    std::size_t at = text.find(from);
    if (at == std::string::npos)
        qFatal("there is no '%s' to change", from.c_str());
    for (; at != std::string::npos; at = text.find(from, at + to.size()))
        text.replace(at, from.size(), to);
    return text;
}

std::string upTo(const std::string &text, const std::string &last)
{
    const std::size_t at = text.find(last);
    if (at == std::string::npos)
        qFatal("there is no '%s' to cut after", last.c_str());
    return text.substr(0, at + last.size());
}

std::string with(const std::string &stream, const std::string &more)
{
    const std::size_t at = stream.find("\n\n", stream.find("345"));
    return stream.substr(0, at + 2) + more + stream.substr(at + 2);
}

std::string withAtEnd(const std::string &stream, const std::string &more)
{
    const std::size_t at = std::min(stream.find("event: message_stop"), stream.find("data: [DONE]"));
    return stream.substr(0, at) + more + stream.substr(at);
}

} // namespace faults
