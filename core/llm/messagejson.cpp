// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/messagejson.h"

#include "core/base/suggest.h"

namespace klineage::llm {

using files::JsonPath;
using files::JsonReader;
using files::OrderedJson;
using nlohmann::json;

namespace {

bool optionalBoolean(JsonReader &reader, const std::string &key, bool missing)
{
    return reader.find(key) ? reader.boolean(key) : missing;
}

} // namespace

OrderedJson toJson(const Usage &usage)
{
    return {{"input", usage.input},
            {"cache_read", usage.cacheRead},
            {"cache_write", usage.cacheWrite},
            {"output", usage.output}};
}

OrderedJson toJson(const Message &message)
{
    OrderedJson out{{"role", toString(message.role)}, {"text", message.text}};
    if (message.cacheUpToHere)
        out["cache"] = true;
    return out;
}

OrderedJson toJson(const Request &request)
{
    OrderedJson messages = OrderedJson::array();
    for (const Message &message : request.messages)
        messages.push_back(toJson(message));
    OrderedJson out{{"purpose", request.purpose},      {"model", request.model},
                    {"system", request.system},        {"cache_system", request.cacheSystem},
                    {"messages", std::move(messages)}, {"max_output_tokens", request.maxOutputTokens}};
    if (request.temperature)
        out["temperature"] = *request.temperature;
    if (!request.effort.empty())
        out["effort"] = request.effort;
    if (!request.extraBody.empty())
        out["extra_body"] = request.extraBody;
    return out;
}

OrderedJson toJson(const Reply &reply)
{
    OrderedJson out{{"text", reply.text},
                    {"stop", toString(reply.stop)},
                    {"model", reply.model},
                    {"request_id", reply.requestId},
                    {"seconds", reply.seconds}};
    if (reply.usageKnown)
        out["usage"] = toJson(reply.usage);
    return out;
}

std::int64_t readCount(JsonReader &reader, const std::string &key, std::int64_t most)
{
    const std::int64_t count = reader.integer(key);
    if (count < 0 || count > most)
        reader.refuse(key, "is " + std::to_string(count) + "; a whole number from 0 to "
                               + std::to_string(most) + " was expected");
    return count;
}

Usage readUsage(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Usage usage;
    usage.input = readCount(reader, "input", maxUsageTokens);
    usage.cacheRead = readCount(reader, "cache_read", maxUsageTokens);
    usage.cacheWrite = readCount(reader, "cache_write", maxUsageTokens);
    usage.output = readCount(reader, "output", maxUsageTokens);
    reader.finish();
    return usage;
}

Message readMessage(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Message message;
    const std::string role = reader.text("role", 64);
    const std::optional<Role> known = roleFromString(role);
    if (!known)
        reader.refuse("role", "is '" + role + "'; expected 'user' or 'assistant'");
    message.role = *known;
    message.text = reader.text("text", maxWrittenText);
    message.cacheUpToHere = optionalBoolean(reader, "cache", false);
    reader.finish();
    return message;
}

Reply readReply(const json &value, const JsonPath &path)
{
    JsonReader reader(value, path);
    Reply reply;
    reply.text = reader.text("text", 3 * maxReplyBytes);
    const std::string stop = reader.text("stop", 64);
    const std::optional<StopReason> known = stopReasonFromString(stop);
    if (!known)
        reader.refuse("stop", "is '" + stop + "'; expected "
                                  + quotedList({"end", "max_tokens", "refusal", "other"})
                                  + didYouMean(stop, {"end", "max_tokens", "refusal", "other"}));
    reply.stop = *known;
    reply.model = reader.text("model", maxWrittenName);
    reply.requestId = reader.text("request_id", maxWrittenName);
    reply.seconds = reader.number("seconds");
    if (reply.seconds < 0)
        reader.refuse("seconds", "is below 0");
    const json *usage = reader.find("usage");
    reply.usageKnown = usage != nullptr;
    if (usage)
        reply.usage = readUsage(*usage, reader.pathOf("usage"));
    reader.finish();
    return reply;
}

} // namespace klineage::llm
