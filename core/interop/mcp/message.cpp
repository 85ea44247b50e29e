// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/mcp/message.h"

namespace klineage::mcp {

using nlohmann::json;

namespace {

/// Counted before parsing, because reading and writing deep values takes stack.
bool isTooDeep(std::string_view text)
{
    int depth = 0;
    bool inString = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (inString) {
            if (c == '\\')
                ++i;
            else if (c == '"')
                inString = false;
        } else if (c == '"') {
            inString = true;
        } else if (c == '[' || c == '{') {
            if (++depth > maxNesting)
                return true;
        } else if (c == ']' || c == '}') {
            --depth;
        }
    }
    return false;
}

bool isId(const json &id)
{
    return id.is_number_integer() || (id.is_string() && id.get_ref<const std::string &>().size() <= 1024);
}

Message readMessage(const json &value)
{
    if (!value.is_object())
        return Refusal{{}, invalidRequest, "A message is a JSON object."};
    const auto id = value.find("id");
    const bool hasId = id != value.end();
    if (hasId && !isId(*id))
        return Refusal{
            {}, invalidRequest, "The id of a request is a string of at most 1,024 bytes or an integer."};
    const json answerTo = hasId ? *id : json();
    const auto version = value.find("jsonrpc");
    if (version == value.end() || *version != "2.0")
        return Refusal{answerTo, invalidRequest, "'jsonrpc' is \"2.0\" in every message."};
    const auto method = value.find("method");
    if (method == value.end() && hasId && (value.contains("result") || value.contains("error")))
        return Response{};
    if (method == value.end() || !method->is_string() || method->get_ref<const std::string &>().size() > 256)
        return Refusal{answerTo, invalidRequest, "'method' is a string of at most 256 bytes."};
    const json params = value.value("params", json::object());
    if (!params.is_object()) {
        if (!hasId)
            return Response{}; // a notification is never answered
        return Refusal{answerTo, invalidParams, "'params' is an object."};
    }
    if (!hasId)
        return Notification{method->get<std::string>(), params};
    return Request{answerTo, method->get<std::string>(), params};
}

} // namespace

Incoming parseLine(std::string_view line)
{
    if (line.size() > maxLineBytes)
        return {{Refusal{{}, parseError, "A message has at most 16 MiB."}}, false};
    if (isTooDeep(line))
        return {{Refusal{{}, parseError, "A message is nested at most 32 levels deep."}}, false};
    const json value = json::parse(line.begin(), line.end(), nullptr, false);
    if (value.is_discarded())
        return {{Refusal{{}, parseError, "The line is no JSON in UTF-8."}}, false};
    if (!value.is_array())
        return {{readMessage(value)}, false};
    if (value.empty() || value.size() > maxBatch)
        return {{Refusal{{}, invalidRequest, "A batch has 1 to 64 messages."}}, false};
    Incoming incoming{{}, true};
    for (const json &one : value)
        incoming.messages.push_back(readMessage(one));
    return incoming;
}

json resultMessage(const json &id, json result)
{
    return {{"jsonrpc", "2.0"}, {"id", id}, {"result", std::move(result)}};
}

json errorMessage(const json &id, int code, const std::string &message)
{
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", {{"code", code}, {"message", message}}}};
}

json notificationMessage(const std::string &method, json params)
{
    return {{"jsonrpc", "2.0"}, {"method", method}, {"params", std::move(params)}};
}

std::string written(const json &message)
{
    return message.dump(-1, ' ', false, json::error_handler_t::replace);
}

} // namespace klineage::mcp
