// SPDX-License-Identifier: GPL-3.0-or-later
// What is said in whole streams: usages, reasons, contents and choices. A reply is believed as far as it can be read; a usage that is
// missing or cannot be true is not, and counts in full.
#include "tests/core/llm/modelfaults.h"

#include <algorithm>

using namespace klineage;
using namespace klineage::llm;
using namespace faults;

namespace {

using nlohmann::json;

constexpr StopReason other = StopReason::Other;

std::string chunkOf(const json &choices)
{
    return "data: " + json{{"id", "c1"}, {"model", "m"}, {"choices", choices}}.dump() + "\n\n";
}

template <typename... Choices>
std::string chunk(const Choices &...each)
{
    json choices = json::array();
    (choices.push_back(json(each)), ...);
    return chunkOf(choices);
}

json choice(int index, const json &delta, const json &reason = nullptr)
{
    return {{"index", index}, {"delta", delta}, {"finish_reason", reason}};
}

/// Chunks of chat completions, then the sound usage and the end.
ServerAnswer completion(const std::string &chunks)
{
    const std::string stream = sound(false);
    return answered(chunks + stream.substr(stream.find("data: {\"choices\":[]")));
}

/// A message of blocks of content, with the sound usage.
ServerAnswer message(const std::string &blocks)
{
    const std::string stream = sound(true);
    return answered(upTo(stream, "\n\n") + blocks + stream.substr(stream.find("event: message_delta")));
}

std::string block(int index, const std::string &type, const std::string &text)
{
    const json begin{{"type", "content_block_start"}, {"index", index}, {"content_block", {{"type", type}}}};
    const std::string key = type == "tool_use" ? "partial_json" : type;
    const json delta{
        {"type", "content_block_delta"},
        {"index", index},
        {"delta", {{"type", key == "partial_json" ? "input_json_delta" : key + "_delta"}, {key, text}}}};
    return "data: " + begin.dump() + "\n\ndata: " + delta.dump() + "\n\n";
}

std::string usageEvent(bool anthropic, int input, int output)
{
    const json event = anthropic ? json{{"type", "message_delta"},
                                        {"usage", {{"input_tokens", input}, {"output_tokens", output}}}}
                                 : json{{"choices", json::array()},
                                        {"usage", {{"prompt_tokens", input}, {"completion_tokens", output}}}};
    return "data: " + event.dump() + "\n\n";
}

void addUsages(FaultTable &table)
{
    const std::string inputs[] = {R"("prompt_tokens":150)", R"("input_tokens":120)"};
    const std::string outputs[] = {R"("completion_tokens":40)", R"("output_tokens":40)"};
    for (const auto &[name, counts] : {std::pair{"input", &inputs}, std::pair{"output", &outputs}}) {
        for (const char *wrong : {"-1", "0.5", "40.0", "\"40\"", "1e30", "99999999999999999999", "[40]", "{}",
                                  "true", "null", "100000"}) {
            for (const bool anthropic : {true, false}) {
                const std::string &from = (*counts)[anthropic ? 1 : 0];
                const std::string to = from.substr(0, from.find(':') + 1) + wrong;
                const ServerAnswer answer = answered(changed(sound(anthropic), from, to));
                const std::string row = std::string("usage, its ") + name + ' ' + wrong;
                table.one(anthropic, row, answer, keptInFull());
            }
        }
    }
    const auto usage = [&](const std::string &name, const std::string &inPlace, const Due &due) {
        table.both(
            "usage " + name, [=](bool a) { return answered(changed(sound(a), "\"usage\":{", inPlace)); },
            due);
    };
    usage("missing", R"("spent":{)", keptInFull());
    usage("null", R"("usage":null,"spent":{)", keptInFull());
    usage("a number", R"("usage":40,"spent":{)", keptInFull());
    usage("a list", R"("usage":[],"spent":{)", keptInFull());
    usage("with more in it", R"("usage":{"more":{"tokens":-1},)", kept());
    table.openAi("usage, more cached than sent",
                 answered(changed(sound(false), R"("cached_tokens":30)", R"("cached_tokens":151)")),
                 keptInFull());
    const auto twice = [&](const std::string &name, int output, const Due &due, int input = 150) {
        table.anthropic("usage twice, " + name,
                        answered(withAtEnd(sound(true), usageEvent(true, std::max(0, input - 30), output))),
                        due);
        table.openAi("usage twice, " + name,
                     answered(withAtEnd(sound(false), usageEvent(false, input, output))), due);
    };
    Due more = kept();
    more.counted.output = 50;
    twice("then more", 50, more);
    twice("then less", 3, keptInFull());
    twice("then none", 0, keptInFull());
    twice("then less than none", -1, keptInFull());
    twice("then none of the input", 40, kept(), 0);
    table.openAi(
        "usage before the last of the text",
        answered(with(changed(sound(false), "\"usage\":{", "\"spent\":{"), usageEvent(false, 150, 5))),
        keptInFull());
}

void addReasons(FaultTable &table)
{
    const auto reason = [&](bool anthropic, const std::string &name, StopReason stop) {
        const std::string from = anthropic ? R"("stop_reason":"end_turn")" : R"("finish_reason":"stop")";
        const std::string to = from.substr(0, from.find(':') + 1) + name;
        const ServerAnswer answer = answered(changed(sound(anthropic), from, to));
        table.one(anthropic, "reason " + name, answer, kept(soundText, stop));
    };
    for (const bool anthropic : {true, false}) {
        for (const char *unknown : {"\"\"", "null", "7", "\"eos\"", "{}"})
            reason(anthropic, unknown, other);
    }
    reason(true, "\"max_tokens\"", StopReason::MaxTokens);
    reason(true, "\"model_context_window_exceeded\"", StopReason::MaxTokens);
    reason(true, "\"refusal\"", StopReason::Refusal);
    reason(true, "\"tool_use\"", other);
    reason(true, "\"pause_turn\"", other);
    reason(false, "\"length\"", StopReason::MaxTokens);
    reason(false, "\"content_filter\"", StopReason::Refusal);
    reason(false, "\"tool_calls\"", other);
    table.both(
        "no reason, and cut before its end",
        [](bool a) {
            const std::string key = a ? "\"stop_reason\"" : "\"finish_reason\"";
            const std::string stream = changed(sound(a), key, "\"because\"");
            return answered(stream.substr(0, stream.find(a ? "event: message_stop" : "data: [DONE]")));
        },
        broken(ErrorCode::Protocol, "ended its answer before the reply was whole."));
    table.openAi("reason \"\" with every piece",
                 answered(changed(changed(sound(false), R"("finish_reason":null)", R"("finish_reason":"")"),
                                  R"("finish_reason":"stop")", R"("finish_reason":"")")),
                 kept(soundText, other));
}

void addContents(FaultTable &table)
{
    const std::string parts =
        R"([{"type":"thinking","thinking":"hm"},{"type":"text","text":"0123"},{"type":"text","text":"456789"}])";
    table.both(
        "not streamed, parts", [=](bool a) { return answered(soundWhole(a, parts)); }, kept());
    table.both(
        "not streamed, a list of texts",
        [](bool a) { return answered(soundWhole(a, R"(["01234","56789"])")); }, kept());
    table.both(
        "not streamed, an empty list", [](bool a) { return answered(soundWhole(a, "[]")); }, kept(""));
    for (const char *wrong : {"7", "{\"text\":\"0\"}", "[{\"type\":\"text\",\"text\":7}]"})
        table.both(
            std::string("not streamed, a content of ") + wrong,
            [=](bool a) { return answered(soundWhole(a, wrong)); },
            broken(ErrorCode::Protocol, "a piece that is no text."));
    const auto text = [&](const std::string &name, const std::string &from, const std::string &to,
                          const std::string &read) {
        table.both(
            name, [=](bool a) { return answered(changed(sound(a), from, to)); }, kept(read));
    };
    text("thoughts in its text", "\"012\"", "\"<think>hm</think>012\"", "<think>hm</think>0123456789");
    text("the key in its text", "345", " " + key + " ", "012 [key] 6789");
    text("a NUL in its text", "345", "\\u0000", std::string("012\0006789", 8));
    text("half a character in its text", "345", "\xe2\x82",
         "012\xef\xbf\xbd"
         "6789");
    text("half a character, escaped", "345", "\\ud83d",
         "012\xef\xbf\xbd"
         "6789");
    text("the other half, escaped", "345", "\\\\\\ude00",
         "012\\\xef\xbf\xbd"
         "6789");
    text("a character of two halves", "345", "\\uD83D\\uDE00",
         "012\xf0\x9f\x98\x80"
         "6789");
    text("nothing in its text", "345", "", "0126789");
    // In pieces of three bytes, and a beginning of it that does not go on.
    const std::string echo = "very-" + key + ", very-";
    table.anthropic("the key in pieces of its text", answered(anthropicStream(echo, soundUsage)),
                    kept("very-[key], very-"));
    table.openAi("the key in pieces of its text", answered(openAiStream(echo, soundUsage)),
                 kept("very-[key], very-"));
}

void addCompletions(FaultTable &table)
{
    const auto stream = [&](const std::string &name, const std::string &chunks, const Due &due) {
        table.openAi(name, completion(chunks), due);
    };
    const auto said = [](const json &content) { return chunk(choice(0, {{"content", content}}, "stop")); };
    stream("parts of a content",
           said({{{"type", "thinking"}, {"thinking", "hm"}}, {{"type", "text"}, {"text", "01234"}}, "56789"}),
           kept());
    for (const json &wrong : {json(7), json{{"text", 7}}, json::array({{{"type", "text"}, {"text", 7}}})})
        stream("a content of " + wrong.dump(), said(wrong),
               broken(ErrorCode::Protocol, "a piece that is no text."));
    stream("thoughts beside the text",
           chunk(choice(0, {{"reasoning_content", "hm"}, {"reasoning", "hm"}, {"content", nullptr}}))
               + said(soundText),
           kept());
    stream("thoughts only", chunk(choice(0, {{"reasoning_content", "hm"}}, "stop")), kept(""));
    stream("a tool in place of a text",
           chunk(choice(0, {{"tool_calls", {{{"function", {{"name", "f"}}}}}}}, "tool_calls")),
           kept("", other));
    stream("a refusal", chunk(choice(0, {{"refusal", soundText}}, "stop")),
           kept(soundText, StopReason::Refusal));
    stream("a refusal that is no text", chunk(choice(0, {{"refusal", json::object()}}, "stop")),
           broken(ErrorCode::Protocol, "a piece that is no text."));
    const Due reasonless = broken(ErrorCode::Protocol, "ended without a finish reason.");
    stream("nothing but its end", "", reasonless);
    stream("no choices", chunkOf(json::array()) + chunkOf(nullptr) + chunkOf({{"index", 0}, {"delta", 7}}),
           reasonless);
    stream("choices that are none", chunk(7, nullptr, "0"), reasonless);
    stream("a choice without its text", chunk(json{{"index", 0}, {"finish_reason", "stop"}}), kept(""));
    stream("two choices an event",
           chunk(choice(1, {{"content", "no"}}), choice(0, {{"content", "01234"}}))
               + chunk(choice(0, {{"content", "56789"}}, "stop"), choice(1, {{"content", "no"}}, "length")),
           kept());
    stream("two choices in turn",
           chunk(choice(0, {{"content", "01234"}})) + chunk(choice(1, {{"content", "no"}}))
               + chunk(choice(1, json::object(), "length"))
               + chunk(choice(0, {{"content", "56789"}}, "stop")),
           kept());
    stream("two choices, the other one first",
           chunk(choice(1, {{"content", "01234"}})) + chunk(choice(0, {{"content", "no"}}, "length"))
               + chunk(choice(1, {{"content", "56789"}}, "stop")),
           kept());
    stream("choices that are numbered as they come",
           chunk(choice(0, {{"content", "01234"}})) + chunk(choice(1, {{"content", "56789"}}, "stop")),
           reasonless);
    stream("a choice of no number",
           chunk(json{{"delta", {{"content", soundText}}}, {"finish_reason", "stop"}}), kept());
    const std::string whole = soundWhole(false);
    table.openAi(
        "not streamed, two choices",
        answered(changed(whole, "\"choices\":[", R"("choices":[{"index":1,"message":{"content":"no"}},)")),
        kept());
    table.openAi("not streamed, no choices", answered(changed(whole, "\"choices\"", "\"chosen\"")),
                 broken(ErrorCode::Protocol, "neither a stream nor a whole reply."));
}

void addMessages(FaultTable &table)
{
    const auto stream = [&](const std::string &name, const std::string &blocks, const Due &due) {
        table.anthropic(name, message(blocks), due);
    };
    stream("thoughts beside the text", block(0, "thinking", "hm") + block(1, "text", soundText), kept());
    stream("two blocks", block(0, "text", "01234") + block(1, "text", "56789"), kept());
    stream("a tool in place of a text", block(0, "tool_use", "{}"), kept(""));
    stream("no block", "", kept(""));
    stream("a delta without its block",
           block(0, "text", soundText).substr(block(0, "text", "").find("\n\n") + 2), kept());
    const Due notOfIt = broken(ErrorCode::Protocol, "is none of the Messages API: ");
    stream("a text of a wrong type", changed(block(0, "text", "no"), "\"no\"", "7"), notOfIt);
    stream("a delta of nothing", "data: {\"type\":\"content_block_delta\"}\n\n", notOfIt);
    stream("a block of nothing", "data: {\"type\":\"content_block_start\"}\n\n", notOfIt);
    stream("an error without a reason", "data: {\"type\":\"error\"}\n\n",
           broken(ErrorCode::Unavailable, "no reason was given."));
    stream("begun twice", upTo(sound(true), "\n\n"), notOfIt);
    table.anthropic("a text before its beginning", answered(block(0, "text", "no") + sound(true)), notOfIt);
    table.anthropic("an end without a beginning", answered("data: {\"type\":\"message_stop\"}\n\n"), notOfIt);
}

} // namespace

void addFaultsOfReplies(FaultTable &table)
{
    addUsages(table);
    addReasons(table);
    addContents(table);
    addCompletions(table);
    addMessages(table);
}
