// SPDX-License-Identifier: GPL-3.0-or-later
// Anthropic Messages API, version 2023-06-01, streamed: message_start (with the input's usage), content blocks, message_delta (stop
// reason and the output's usage so far), message_stop. Unknown events and blocks (thinking) are passed over, as the API asks.
#include "core/llm/messagejson.h"
#include "core/llm/network/dialect.h"
#include "core/llm/network/streamjson.h"

#include <algorithm>
#include <map>

namespace klineage::llm {

using nlohmann::json;

namespace {

constexpr int maxCacheMarks = 4; // more are refused by the API

StopReason stopReason(const std::string &name)
{
    static const std::map<std::string, StopReason> known{
        {"end_turn", StopReason::End},
        {"stop_sequence", StopReason::End},
        {"max_tokens", StopReason::MaxTokens},
        {"model_context_window_exceeded", StopReason::MaxTokens},
        {"refusal", StopReason::Refusal}};
    const auto found = known.find(name);
    return found == known.end() ? StopReason::Other : found->second;
}

Error protocolError(const std::string &what)
{
    return {ErrorCode::Protocol, "The stream of the reply is none of the Messages API: " + what, {}};
}

class AnthropicDecoder final : public StreamDecoder
{
public:
    Result<bool> take(const SseEvent &event, const TextCallback &onText) override
    {
        const json value = json::parse(event.data, nullptr, false);
        if (!value.is_object())
            return tl::unexpected(
                protocolError("an event '" + event.name.substr(0, 60) + "' is no JSON object."));
        const std::string type = textMember(value, "type");
        if (type == "error")
            return tl::unexpected(serverError(event.data));
        if (type == "message_start")
            return start(value);
        if (type == "content_block_start")
            return block(member(value, "content_block"), onText);
        if (type == "content_block_delta")
            return delta(member(value, "delta"), onText);
        if (type == "message_delta")
            return messageDelta(value);
        if (type == "message_stop")
            return stop();
        return false;
    }

    Status takeWhole(std::string_view body, const TextCallback &onText) override
    {
        const json value = json::parse(body, nullptr, false);
        const json *content = member(value, "content");
        if (textMember(value, "type") != "message" || !content)
            return tl::unexpected(notWhole(body));
        m_reply.model = textMember(value, "model");
        m_reply.requestId = textMember(value, "id");
        m_reply.stop = stopReason(textMember(value, "stop_reason"));
        const json *usage = member(value, "usage");
        readUsage(usage);
        m_outputCounted = usage && member(*usage, "output_tokens");
        settleUsage();
        return appendContent(*content, onText);
    }

private:
    static Error serverError(const std::string &data)
    {
        const ApiError error = parseApiError(data).value_or(ApiError{"error", "no reason was given"});
        return {ErrorCode::Unavailable,
                "The server broke off its reply (" + error.type + "): " + error.message + '.',
                {}};
    }

    Result<bool> start(const json &value)
    {
        const json *message = member(value, "message");
        if (!message || m_started)
            return tl::unexpected(protocolError("message_start is empty or there twice."));
        m_started = true;
        m_reply.model = textMember(*message, "model");
        m_reply.requestId = textMember(*message, "id");
        readUsage(member(*message, "usage"));
        return false;
    }

    Result<bool> block(const json *content, const TextCallback &onText)
    {
        if (!content)
            return tl::unexpected(protocolError("content_block_start is empty."));
        if (textMember(*content, "type") != "text")
            return false;
        if (Status added = append(textMember(*content, "text", maxReplyBytes + 1), onText); !added)
            return tl::unexpected(added.error());
        return false;
    }

    Result<bool> delta(const json *change, const TextCallback &onText)
    {
        if (!change || !m_started)
            return tl::unexpected(
                protocolError("content_block_delta is empty or comes before message_start."));
        if (textMember(*change, "type") != "text_delta")
            return false;
        const json *text = member(*change, "text");
        if (!text || !text->is_string())
            return tl::unexpected(protocolError("a text_delta has no text."));
        if (Status added = append(text->get_ref<const std::string &>(), onText); !added)
            return tl::unexpected(added.error());
        return false;
    }

    Result<bool> messageDelta(const json &value)
    {
        if (const json *change = member(value, "delta"); change && member(*change, "stop_reason")) {
            m_reply.stop = stopReason(textMember(*change, "stop_reason"));
            m_stopped = true;
        }
        const json *usage = member(value, "usage");
        m_outputCounted = m_outputCounted || (usage && member(*usage, "output_tokens"));
        readUsage(usage);
        return false;
    }

    Result<bool> stop()
    {
        if (!m_started || !m_stopped)
            return tl::unexpected(protocolError("message_stop comes without its message."));
        settleUsage();
        return true;
    }

    void settleUsage()
    {
        m_reply.usageKnown = m_inputCounted && m_outputCounted && !m_usageWrong;
        if (!m_reply.usageKnown)
            m_reply.usage = {};
    }

    /// Counts are totals so far: a later one takes the place of an earlier one. Keys that are missing say nothing.
    void readUsage(const json *usage)
    {
        if (!usage)
            return;
        const auto read = [&](const char *key, std::int64_t &count) {
            if (member(*usage, key))
                count = tokenMember(*usage, key, m_usageWrong);
        };
        m_inputCounted = m_inputCounted || member(*usage, "input_tokens") != nullptr;
        read("input_tokens", m_reply.usage.input);
        read("cache_read_input_tokens", m_reply.usage.cacheRead);
        read("cache_creation_input_tokens", m_reply.usage.cacheWrite);
        read("output_tokens", m_reply.usage.output);
    }

    bool m_started = false;
    bool m_stopped = false;
    bool m_inputCounted = false;
    bool m_outputCounted = false;
    bool m_usageWrong = false;
};

json textBlock(const std::string &text, bool cached)
{
    json block{{"type", "text"}, {"text", text}};
    if (cached)
        block["cache_control"] = {{"type", "ephemeral"}};
    return block;
}

class AnthropicDialect final : public Dialect
{
public:
    std::string name() const override { return "anthropic"; }
    std::string defaultBaseUrl() const override { return "https://api.anthropic.com"; }
    std::string path() const override { return "/v1/messages"; }

    std::vector<std::string> headers(const std::string &key) const override
    {
        std::vector<std::string> lines{"anthropic-version: 2023-06-01"};
        if (!key.empty())
            lines.push_back("x-api-key: " + key);
        return lines;
    }

    std::string body(const Request &request) const override
    {
        const bool cacheSystem = request.cacheSystem && !request.system.empty();
        // The last marks are worth most: each covers everything before it.
        const auto marks = std::count_if(request.messages.begin(), request.messages.end(),
                                         [](const Message &message) { return message.cacheUpToHere; });
        auto passedOver = std::max<std::ptrdiff_t>(0, marks - (maxCacheMarks - (cacheSystem ? 1 : 0)));
        json messages = json::array();
        for (const Message &message : request.messages) {
            const bool cached = message.cacheUpToHere && passedOver-- <= 0;
            messages.push_back({{"role", toString(message.role)},
                                {"content", json::array({textBlock(message.text, cached)})}});
        }
        json out{{"model", request.model},
                 {"max_tokens", request.maxOutputTokens},
                 {"stream", true},
                 {"messages", std::move(messages)}};
        if (!request.system.empty())
            out["system"] = json::array({textBlock(request.system, cacheSystem)});
        if (request.temperature)
            out["temperature"] = *request.temperature;
        if (!request.effort.empty())
            out["output_config"] = {{"effort", request.effort}};
        addExtraBody(request, out);
        return files::oneLine(out);
    }

    std::unique_ptr<StreamDecoder> decoder() const override { return std::make_unique<AnthropicDecoder>(); }
};

} // namespace

std::unique_ptr<Dialect> makeAnthropicDialect()
{
    return std::make_unique<AnthropicDialect>();
}

} // namespace klineage::llm
