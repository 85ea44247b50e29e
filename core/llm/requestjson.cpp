// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/requestjson.h"

#include <limits>

namespace klineage::llm {

using files::OrderedJson;
using files::JsonPath;
using files::JsonReader;
using nlohmann::json;

namespace {

/// A chat so far: what was asked, then what was answered.
std::vector<Message> chatOf(const Exchange &exchange)
{
    std::vector<Message> chat = exchange.request.messages;
    if (!exchange.reply.text.empty())
        chat.push_back({Role::Assistant, exchange.reply.text, false});
    return chat;
}

std::size_t chatLength(const Exchange &exchange)
{
    return exchange.request.messages.size() + (exchange.reply.text.empty() ? 0 : 1);
}

/// What a request need not say again.
struct Shared {
    const Exchange *with = nullptr;
    std::size_t messages = 0; ///< from the beginning of with's chat
    std::size_t bytes = 0;
};

Shared sharedWith(const Exchange &earlier, const Request &request)
{
    Shared shared{&earlier, 0, earlier.request.system == request.system ? request.system.size() : 0};
    const std::vector<Message> &asked = earlier.request.messages;
    for (const Message &message : request.messages) {
        const std::size_t at = shared.messages;
        const bool isReply = at == asked.size();
        if (at >= chatLength(earlier) || message.role != (isReply ? Role::Assistant : asked[at].role)
            || message.text != (isReply ? earlier.reply.text : asked[at].text))
            break;
        ++shared.messages;
        shared.bytes += message.text.size();
    }
    return shared;
}

/// The exchange with which the request shares most text; of equals the last one.
Shared mostShared(const Request &request, std::span<const Exchange> before)
{
    Shared most;
    for (const Exchange &earlier : before) {
        const Shared shared = sharedWith(earlier, request);
        if (shared.bytes > 0 && shared.bytes >= most.bytes)
            most = shared;
    }
    return most;
}

/// A number from least to most.
std::size_t readNumber(JsonReader &reader, const char *key, std::size_t least, std::size_t most)
{
    const auto number = static_cast<std::size_t>(readCount(reader, key, std::numeric_limits<int>::max()));
    if (number < least || number > most)
        reader.refuse(key, "is " + std::to_string(number) + "; a number from " + std::to_string(least)
                               + " to " + std::to_string(most) + " was expected");
    return number;
}

/// The request that a line with "after" begins with.
Request readKept(JsonReader &reader, std::span<const Exchange> before)
{
    if (before.empty())
        reader.refuse("after", "names an exchange, but this is the first");
    const Exchange &earlier = before[readNumber(reader, "after", 1, before.size()) - 1];
    Request request = earlier.request;
    request.messages = chatOf(earlier);
    if (reader.find("keep"))
        request.messages.resize(readNumber(reader, "keep", 0, request.messages.size()));
    for (Message &message : request.messages)
        message.cacheUpToHere = false;
    const json *marks = reader.optionalArray("cache", maxMessages);
    for (std::size_t i = 0; marks && i < marks->size(); ++i) {
        const std::int64_t mark =
            files::readInteger((*marks)[i], files::childPath(reader.pathOf("cache"), std::to_string(i)));
        if (mark < 1 || mark > static_cast<std::int64_t>(request.messages.size()))
            reader.refuse("cache", "holds a number that is none of a message kept");
        request.messages[static_cast<std::size_t>(mark) - 1].cacheUpToHere = true;
    }
    return request;
}

} // namespace

OrderedJson writeRequest(const Request &request, std::span<const Exchange> before)
{
    const Shared shared = mostShared(request, before);
    if (!shared.with)
        return toJson(request);
    const Request &there = shared.with->request;
    OrderedJson out{{"after", shared.with->number}};
    if (shared.messages != chatLength(*shared.with))
        out["keep"] = shared.messages;
    if (request.purpose != there.purpose)
        out["purpose"] = request.purpose;
    if (request.model != there.model)
        out["model"] = request.model;
    if (request.system != there.system)
        out["system"] = request.system;
    if (request.cacheSystem != there.cacheSystem)
        out["cache_system"] = request.cacheSystem;
    for (std::size_t i = 0; i < request.messages.size(); ++i) {
        if (i >= shared.messages)
            out["messages"].push_back(toJson(request.messages[i]));
        else if (request.messages[i].cacheUpToHere)
            out["cache"].push_back(i + 1);
    }
    if (request.maxOutputTokens != there.maxOutputTokens)
        out["max_output_tokens"] = request.maxOutputTokens;
    if (request.temperature != there.temperature)
        out["temperature"] = request.temperature ? OrderedJson(*request.temperature) : OrderedJson();
    if (request.effort != there.effort)
        out["effort"] = request.effort;
    if (request.extraBody != there.extraBody)
        out["extra_body"] = request.extraBody;
    return out;
}

Request readRequest(const json &value, const JsonPath &path, std::span<const Exchange> before)
{
    JsonReader reader(value, path);
    const bool continues = reader.find("after") != nullptr;
    Request request = continues ? readKept(reader, before) : Request();
    const auto isGiven = [&](const char *key) { return !continues || reader.find(key); };
    if (isGiven("purpose"))
        request.purpose = reader.text("purpose", maxWrittenName);
    if (isGiven("model"))
        request.model = reader.text("model", maxWrittenName);
    if (isGiven("system"))
        request.system = reader.text("system", maxWrittenText);
    if (isGiven("cache_system"))
        request.cacheSystem = reader.boolean("cache_system");
    if (isGiven("messages")) {
        reader.require("messages");
        const json *messages = reader.optionalArray("messages", maxMessages);
        for (std::size_t i = 0; i < messages->size(); ++i)
            request.messages.push_back(
                readMessage((*messages)[i], files::childPath(reader.pathOf("messages"), std::to_string(i))));
    }
    if (isGiven("max_output_tokens"))
        request.maxOutputTokens =
            static_cast<int>(readCount(reader, "max_output_tokens", maxOutputTokensLimit));
    if (const json *temperature = reader.find("temperature")) {
        request.temperature.reset();
        if (!continues || !temperature->is_null())
            request.temperature = reader.number("temperature");
    }
    if (reader.find("effort"))
        request.effort = reader.text("effort", maxWrittenName);
    if (reader.find("extra_body"))
        request.extraBody = reader.text("extra_body", maxExtraBodyBytes);
    if (request.messages.size() > maxMessages)
        reader.refuse("after", "makes a chat of more than " + std::to_string(maxMessages) + " messages");
    reader.finish();
    return request;
}

} // namespace klineage::llm
