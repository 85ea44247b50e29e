// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/dialect.h"

#include "core/llm/network/streamjson.h"

namespace klineage::llm {

using nlohmann::json;

Status StreamDecoder::append(std::string_view text, const TextCallback &onText)
{
    if (m_reply.text.size() + text.size() > maxReplyBytes)
        return fail(ErrorCode::Protocol, "The reply is longer than 2 MiB.");
    m_reply.text += text;
    if (onText && !text.empty())
        onText(text);
    return {};
}

Status StreamDecoder::appendContent(const json &content, const TextCallback &onText)
{
    if (content.is_string())
        return append(content.get_ref<const std::string &>(), onText);
    if (!content.is_array())
        return fail(ErrorCode::Protocol, "The reply has a piece that is no text.");
    for (const json &part : content) {
        const json *text = part.is_string() ? &part : nullptr;
        const std::string type = textMember(part, "type");
        if (type == "text" || type == "output_text" || type.empty())
            text = text ? text : member(part, "text");
        if (!text)
            continue;
        if (!text->is_string())
            return fail(ErrorCode::Protocol, "The reply has a piece that is no text.");
        if (Status added = append(text->get_ref<const std::string &>(), onText); !added)
            return added;
    }
    return {};
}

Error StreamDecoder::notWhole(std::string_view body)
{
    if (const auto error = parseApiError(body))
        return {ErrorCode::Unavailable,
                "The server answered with an error (" + (error->type.empty() ? "error" : error->type)
                    + "): " + error->message + '.',
                {}};
    return {ErrorCode::Protocol, "The server's answer is neither a stream nor a whole reply.",
            validUtf8(body.substr(0, 500))};
}

void addExtraBody(const Request &request, json &body)
{
    const json extra = json::parse(request.extraBody, nullptr, false);
    if (extra.is_object())
        body.insert(extra.begin(), extra.end());
}

const json *member(const json &value, const char *key)
{
    if (!value.is_object())
        return nullptr;
    const auto found = value.find(key);
    return found == value.end() || found->is_null() ? nullptr : &*found;
}

std::string textMember(const json &value, const char *key, std::size_t most)
{
    const json *found = member(value, key);
    if (!found || !found->is_string())
        return {};
    const auto &text = found->get_ref<const std::string &>();
    return text.size() <= most ? text : validUtf8(std::string_view(text).substr(0, most));
}

std::int64_t tokenMember(const json &value, const char *key, bool &wrong)
{
    const json *found = member(value, key);
    if (!found)
        return 0;
    if (found->is_number_unsigned()
        && found->get<std::uint64_t>() <= static_cast<std::uint64_t>(maxUsageTokens))
        return found->get<std::int64_t>();
    wrong = true;
    return 0;
}

std::optional<ApiError> parseApiError(std::string_view text)
{
    const json value = json::parse(text, nullptr, false);
    const json *error = member(value, "error");
    if (!error)
        return {};
    if (error->is_string())
        return ApiError{{}, textMember(value, "error", 2000)};
    ApiError result{textMember(*error, "type", 100), textMember(*error, "message", 2000)};
    if (result.type.empty())
        result.type = textMember(*error, "code", 100);
    if (result.type.empty() && result.message.empty())
        return {};
    return result;
}

} // namespace klineage::llm
