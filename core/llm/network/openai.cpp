// SPDX-License-Identifier: GPL-3.0-or-later
// OpenAI's chat completions, streamed: chunks with a piece of the text each, one with the finish reason, one with the usage (asked for by
// stream_options), then "[DONE]". vLLM, Ollama and llama.cpp speak the same; some leave out the usage or the "[DONE]".
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
            if (m_finished)
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

private:
    Status takeChoice(const json &choice, const TextCallback &onText)
    {
        if (const json *delta = member(choice, "delta")) {
            for (const char *key : {"content", "refusal"}) {
                const json *text = member(*delta, key);
                if (!text)
                    continue;
                if (!text->is_string())
                    return fail(ErrorCode::Protocol, "The stream of the reply has a piece that is no text.");
                if (Status added = append(text->get_ref<const std::string &>(), onText); !added)
                    return added;
                m_refused = m_refused || (key[0] == 'r' && !text->get_ref<const std::string &>().empty());
            }
        }
        if (member(choice, "finish_reason")) {
            m_finished = true;
            m_reply.stop =
                m_refused ? StopReason::Refusal : finishReason(textMember(choice, "finish_reason"));
        }
        return {};
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
