// SPDX-License-Identifier: GPL-3.0-or-later
// OpenAI's chat completions, streamed: chunks with a piece of the text each, one with the finish reason, one with the usage (asked for by
// stream_options), then "[DONE]". vLLM, Ollama and llama.cpp speak the same; some leave out the usage, the "[DONE]" or the reason, send
// a list of parts as the content, or the whole reply at once.
#include "core/llm/messagejson.h"
#include "core/llm/network/dialect.h"
#include "core/llm/network/streamjson.h"

#include <map>

namespace klineage::llm {

using nlohmann::json;

namespace {

StopReason finishReason(const std::string &name)
{
    static const std::map<std::string, StopReason> known{{"stop", StopReason::End},
                                                         {"length", StopReason::MaxTokens},
                                                         {"content_filter", StopReason::Refusal}};
    const auto found = known.find(name);
    return found == known.end() ? StopReason::Other : found->second;
}

class OpenAiDecoder final : public StreamDecoder
{
public:
    OpenAiDecoder() { m_reply.usageKnown = false; }

    Result<bool> take(const SseEvent &event, const TextCallback &onText) override
    {
        if (event.data == "[DONE]") {
            if (m_finished || m_saysNothing)
                return true;
            return fail(ErrorCode::Protocol, "The stream of the reply ended without a finish reason.");
        }
        const json value = json::parse(event.data, nullptr, false);
        if (!value.is_object())
            return fail(ErrorCode::Protocol,
                        "The stream of the reply is none of chat completions: an event is no JSON object.");
        if (const auto error = parseApiError(event.data))
            return fail(ErrorCode::Unavailable, "The server broke off its reply ("
                                                    + (error->type.empty() ? "error" : error->type)
                                                    + "): " + error->message + '.');
        if (m_reply.model.empty())
            m_reply.model = textMember(value, "model");
        if (m_reply.requestId.empty())
            m_reply.requestId = textMember(value, "id");
        if (const json *usage = member(value, "usage"))
            readUsage(*usage);
        const json *choices = member(value, "choices");
        if (!choices || !choices->is_array() || choices->empty())
            return false;
        if (Status taken = takeChoice(choices->front(), onText); !taken)
            return tl::unexpected(taken.error());
        return false;
    }

    bool isWholeAtEnd() const override { return m_finished; }

    Status takeWhole(std::string_view body, const TextCallback &onText) override
    {
        const json value = json::parse(body, nullptr, false);
        const json *choices = member(value, "choices");
        const json *first = choices && choices->is_array() && !choices->empty() ? &choices->front() : nullptr;
        const json *message = first ? member(*first, "message") : nullptr;
        if (!message)
            return tl::unexpected(notWhole(body));
        m_reply.model = textMember(value, "model");
        m_reply.requestId = textMember(value, "id");
        if (const json *usage = member(value, "usage"))
            readUsage(*usage);
        if (Status taken = takeMessage(*message, onText); !taken)
            return taken;
        finish(*first);
        m_finished = true;
        return {};
    }

private:
    Status takeChoice(const json &choice, const TextCallback &onText)
    {
        if (const json *delta = member(choice, "delta")) {
            if (Status taken = takeMessage(*delta, onText); !taken)
                return taken;
        }
        finish(choice);
        return {};
    }

    Status takeMessage(const json &message, const TextCallback &onText)
    {
        if (const json *content = member(message, "content")) {
            if (Status added = appendContent(*content, onText); !added)
                return added;
        }
        const std::size_t refusalAt = m_reply.text.size();
        if (const json *refusal = member(message, "refusal")) {
            if (Status added = appendContent(*refusal, onText); !added)
                return added;
        }
        m_refused = m_refused || m_reply.text.size() > refusalAt;
        return {};
    }

    /// Some servers send an empty reason with every piece: it says nothing, and the reply ends with "[DONE]" alone.
    void finish(const json &choice)
    {
        const std::string reason = textMember(choice, "finish_reason");
        if (reason.empty()) {
            m_saysNothing = m_saysNothing || member(choice, "finish_reason");
            if (!m_finished)
                m_reply.stop = m_refused ? StopReason::Refusal : StopReason::Other;
            return;
        }
        m_finished = true;
        m_reply.stop = m_refused ? StopReason::Refusal : finishReason(reason);
    }

    void readUsage(const json &usage)
    {
        bool wrong = !member(usage, "prompt_tokens") || !member(usage, "completion_tokens");
        const std::int64_t prompt = tokenMember(usage, "prompt_tokens", wrong);
        const json *details = member(usage, "prompt_tokens_details");
        const std::int64_t cached = details ? tokenMember(*details, "cached_tokens", wrong) : 0;
        const std::int64_t written = details ? tokenMember(*details, "cache_write_tokens", wrong) : 0;
        const std::int64_t output = tokenMember(usage, "completion_tokens", wrong);
        m_reply.usageKnown = !wrong && cached + written <= prompt;
        m_reply.usage =
            m_reply.usageKnown ? Usage{prompt - cached - written, cached, written, output} : Usage{};
    }

    bool m_finished = false;
    bool m_saysNothing = false; ///< there was a reason, but an empty one
    bool m_refused = false;
};

class OpenAiDialect final : public Dialect
{
public:
    explicit OpenAiDialect(bool isOpenAi)
        : m_isOpenAi(isOpenAi)
    {}

    std::string name() const override { return "openai"; }
    std::string defaultBaseUrl() const override { return "https://api.openai.com/v1"; }
    std::string path() const override { return "/chat/completions"; }

    std::vector<std::string> headers(const std::string &key) const override
    {
        if (key.empty())
            return {};
        return {"Authorization: Bearer " + key};
    }

    std::string body(const Request &request) const override
    {
        json messages = json::array();
        if (!request.system.empty())
            messages.push_back({{"role", "system"}, {"content", request.system}});
        for (const Message &message : request.messages)
            messages.push_back({{"role", toString(message.role)}, {"content", message.text}});
        json out{{"model", request.model},
                 {"messages", std::move(messages)},
                 {"stream", true},
                 {"stream_options", {{"include_usage", true}}},
                 {m_isOpenAi ? "max_completion_tokens" : "max_tokens", request.maxOutputTokens}};
        if (request.temperature)
            out["temperature"] = *request.temperature;
        if (!request.effort.empty())
            out["reasoning_effort"] = request.effort;
        addExtraBody(request, out);
        return files::oneLine(out);
    }

    std::unique_ptr<StreamDecoder> decoder() const override { return std::make_unique<OpenAiDecoder>(); }

private:
    bool m_isOpenAi;
};

} // namespace

std::unique_ptr<Dialect> makeOpenAiDialect(bool isOpenAi)
{
    return std::make_unique<OpenAiDialect>(isOpenAi);
}

} // namespace klineage::llm
