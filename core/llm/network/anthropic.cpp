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
    AnthropicDecoder()
    {
        m_reply.usageKnown = false;
        m_reply.stop = StopReason::Other;
    }

    Result<bool> take(const SseEvent &event, const TextCallback &onText) override
    {
        const json value = parseLeniently(event.data);
        if (!value.is_object())
            return tl::unexpected(
                protocolError("an event '" + event.name.substr(0, 60) + "' is no JSON object."));
        const std::string type = textMember(value, "type");
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
        const std::optional<ApiError> error = apiErrorOf(value);
        if (error || type == "error")
            return tl::unexpected(brokenOff(error.value_or(ApiError{{}, "no reason was given"})));
        return false;
    }

    bool isWholeAtEnd() const override { return m_stopped; }

    Status takeWhole(std::string_view body, const TextCallback &onText) override
    {
        const json value = parseLeniently(body);
        const json *content = member(value, "content");
        if (textMember(value, "type") != "message" || !content)
            return tl::unexpected(notWhole(body));
        m_reply.model = textMember(value, "model");
        m_reply.requestId = textMember(value, "id");
        m_reply.stop = stopReason(textMember(value, "stop_reason"));
        takeUsage(member(value, "usage"), true);
        return appendContent(*content, onText);
    }

private:
    Result<bool> start(const json &value)
    {
        const json *message = member(value, "message");
        if (!message || m_started)
            return tl::unexpected(protocolError("message_start is empty or there twice."));
        m_started = true;
        m_reply.model = textMember(*message, "model");
        m_reply.requestId = textMember(*message, "id");
        takeUsage(member(*message, "usage"), false);
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
        if (const json *change = member(value, "delta")) {
            const std::string reason = textMember(*change, "stop_reason");
            m_stopped = m_stopped || !reason.empty();
            if (!reason.empty())
                m_reply.stop = stopReason(reason);
        }
        takeUsage(member(value, "usage"), true);
        return false;
    }

    /// Some servers give no reason: the reply ends with this event alone.
    Result<bool> stop() const
    {
        if (!m_started)
            return tl::unexpected(protocolError("message_stop comes without its message."));
        return true;
    }

    /// Counts are totals so far, of which there are several. Of the input the greatest counts; an output that shrinks is not believed, and
    /// what it comes to is not known before its end. Keys that are missing say nothing.
    void takeUsage(const json *usage, bool atEnd)
    {
        if (!usage)
            return;
        const auto read = [&](const char *key, std::int64_t before) {
            return member(*usage, key) ? tokenMember(*usage, key, m_usageWrong) : before;
        };
        m_usage.input = std::max(m_usage.input, read("input_tokens", 0));
        m_usage.cacheRead = std::max(m_usage.cacheRead, read("cache_read_input_tokens", 0));
        m_usage.cacheWrite = std::max(m_usage.cacheWrite, read("cache_creation_input_tokens", 0));
        const std::int64_t output = read("output_tokens", m_usage.output);
        m_usageWrong = m_usageWrong || output < m_usage.output;
        m_usage.output = output;
        m_inputCounted = m_inputCounted || member(*usage, "input_tokens");
        m_outputCounted = m_outputCounted || (atEnd && member(*usage, "output_tokens"));
        m_reply.usageKnown = m_inputCounted && m_outputCounted && !m_usageWrong;
        m_reply.usage = m_reply.usageKnown ? m_usage : Usage{};
    }

    Usage m_usage;
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
