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

/// The value of an "id" that begins at `at` of a text; null: none is there.
json idAt(std::string_view text, std::size_t at)
{
    constexpr std::string_view blanks = " \t\r\n";
    at = text.find_first_not_of(blanks, at);
    if (at == std::string_view::npos || text[at] != ':')
        return {};
    at = text.find_first_not_of(blanks, at + 1);
    if (at == std::string_view::npos)
        return {};
    std::size_t end = at + 1;
    if (text[at] == '"') {
        while (end < text.size() && text[end] != '"')
            end += text[end] == '\\' ? 2 : 1;
        ++end;
    } else {
        while (end < text.size() && text[end] >= '0' && text[end] <= '9')
            ++end;
    }
    if (end >= text.size())
        return {};
    const json value = json::parse(text.substr(at, end - at), nullptr, false);
    return isId(value) ? value : json();
}

/// The id among the keys of the outermost object, as far as the text goes.
json idInHead(std::string_view text)
{
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '"') {
            const std::size_t begin = i++;
            while (i < text.size() && text[i] != '"')
                i += text[i] == '\\' ? 2 : 1;
            if (depth == 1 && i < text.size() && text.substr(begin, i - begin) == "\"id") {
                if (json id = idAt(text, i + 1); !id.is_null())
                    return id;
            }
        } else {
            depth += c == '{' || c == '[' ? 1 : c == '}' || c == ']' ? -1 : 0;
        }
    }
    return {};
}

/// An id behind the value that was too long. Only what is certain to stand outside of it: nothing opens or closes after it but the end.
json idInTail(std::string_view text)
{
    const std::size_t end = text.find_last_not_of(" \t\r\n");
    const std::size_t at = text.rfind("\"id\"");
    if (at == std::string_view::npos || end == std::string_view::npos || text[end] != '}')
        return {};
    const std::string_view rest = text.substr(at, end - at);
    const std::size_t before = text.find_last_not_of(" \t\r\n", at == 0 ? 0 : at - 1);
    const bool isKey =
        at > 0 && before != std::string_view::npos && (text[before] == ',' || text[before] == '{');
    if (!isKey || rest.find_first_of("{}[]") != std::string_view::npos)
        return {};
    return idAt(text, at + 4);
}

json idOf(std::string_view line, std::string_view tail)
{
    if (json id = idInHead(line); !id.is_null())
        return id;
    return idInTail(tail.empty() ? line : tail);
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

Incoming parseLine(std::string_view line, std::string_view tail)
{
    if (line.size() > maxLineBytes || !tail.empty())
        return {{Refusal{idOf(line, tail), parseError, "A message has at most 16 MiB."}}, false};
    if (isTooDeep(line))
        return {{Refusal{idOf(line, {}), parseError, "A message is nested at most 32 levels deep."}}, false};
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

json errorMessage(const json &id, int code, const std::string &message, json data)
{
    json error{{"code", code}, {"message", message}};
    if (!data.is_null())
        error["data"] = std::move(data);
    return {{"jsonrpc", "2.0"}, {"id", id}, {"error", std::move(error)}};
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
