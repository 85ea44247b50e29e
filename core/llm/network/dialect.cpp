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
            printable(body.substr(0, 500))};
}

std::string printable(std::string_view text)
{
    std::string result = validUtf8(text);
    for (char &c : result) {
        const auto byte = static_cast<unsigned char>(c);
        if ((byte < ' ' && c != '\n' && c != '\t') || byte == 0x7f)
            c = ' ';
    }
    return result;
}

Error StreamDecoder::brokenOff(const ApiError &error)
{
    return {ErrorCode::Unavailable,
            "The server broke off its reply (" + (error.type.empty() ? "error" : error.type)
                + "): " + error.message + '.',
            {}};
}

void addExtraBody(const Request &request, json &body)
{
    const json extra = json::parse(request.extraBody, nullptr, false);
    if (extra.is_object())
        body.insert(extra.begin(), extra.end());
}

std::optional<ApiError> parseApiError(std::string_view text)
{
    return apiErrorOf(parseLeniently(text));
}

std::optional<ApiError> apiErrorOf(const json &value)
{
    const json &whole = value.is_array() && !value.empty() ? value.front() : value;
    const json *error = textMember(whole, "object") == "error" ? &whole : member(whole, "error");
    if (!error)
        return {};
    ApiError result;
    if (error->is_string())
        result.message = textMember(whole, "error", 2000);
    else
        result = {textMember(*error, "type", 100), textMember(*error, "message", 2000)};
    if (result.type.empty())
        result.type = textMember(*error, "code", 100);
    if (result.type.empty() && result.message.empty())
        return {};
    return ApiError{printable(result.type), printable(result.message)};
}

} // namespace klineage::llm
