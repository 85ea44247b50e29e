// SPDX-License-Identifier: GPL-3.0-or-later
// OpenAI's chat completions, streamed: chunks with a piece of the text each, one with the finish reason, one with the usage (asked for by
// stream_options), then "[DONE]". vLLM, Ollama and llama.cpp speak the same; some leave out the usage, the "[DONE]" or the reason, send
// a list of parts as the content, or the whole reply at once.
#include "core/llm/messagejson.h"
#include "core/llm/network/dialect.h"
#include "core/llm/network/streamjson.h"

#include <algorithm>
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
    OpenAiDecoder()
    {
        m_reply.usageKnown = false;
        m_reply.stop = StopReason::Other;
    }

    Result<bool> take(const SseEvent &event, const TextCallback &onText) override
    {
        if (isDone(event.data)) {
            if (m_finished || (m_choice && !m_sawOthers))
                return true;
            return fail(ErrorCode::Protocol, "The stream of the reply ended without a finish reason.");
        }
        const json value = parseLeniently(event.data);
        if (!value.is_object())
            return fail(ErrorCode::Protocol,
                        "The stream of the reply is none of chat completions: an event is no JSON object.");
        if (const auto error = apiErrorOf(value))
            return tl::unexpected(brokenOff(*error));
        if (m_reply.model.empty())
            m_reply.model = textMember(value, "model");
        if (m_reply.requestId.empty())
            m_reply.requestId = textMember(value, "id");
        const json *choice = choiceOf(value);
        if (choice) {
            if (Status taken = takeChoice(*choice, onText); !taken)
                return tl::unexpected(taken.error());
        }
        if (const json *usage = member(value, "usage"))
            readUsage(*usage);
        return false;
    }

    bool isWholeAtEnd() const override { return m_finished; }

    Status takeWhole(std::string_view body, const TextCallback &onText) override
    {
        const json value = parseLeniently(body);
        const json *choice = choiceOf(value);
        const json *message = choice ? member(*choice, "message") : nullptr;
        if (!message)
            return tl::unexpected(notWhole(body));
        m_reply.model = textMember(value, "model");
        m_reply.requestId = textMember(value, "id");
        if (Status taken = takeMessage(*message, onText); !taken)
            return taken;
        if (const json *usage = member(value, "usage"))
            readUsage(*usage);
        finish(*choice);
        m_finished = true;
        return {};
    }

private:
    static bool isDone(std::string_view data)
    {
        const std::size_t end = data.find_last_not_of(" \t");
        return data.substr(0, end + 1) == "[DONE]";
    }

    /// One was asked for. Of several that come all the same, in whatever order, the same one is always taken.
    const json *choiceOf(const json &value)
    {
        const json *choices = member(value, "choices");
        if (!choices || !choices->is_array() || choices->empty())
            return nullptr;
        const auto indexOf = [](const json &choice) {
            const json *index = member(choice, "index");
            return index && index->is_number_integer() ? index->get<std::int64_t>() : 0;
        };
        const json *first = nullptr;
        for (const json &choice : *choices) {
            if (!choice.is_object())
                continue;
            const bool isBetter = !first || indexOf(choice) < indexOf(*first);
            if (m_choice ? indexOf(choice) == *m_choice : isBetter)
                first = &choice;
        }
        if (first)
            m_choice = indexOf(*first);
        else
            m_sawOthers = true;
        return first;
    }

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
        const std::size_t before = m_reply.text.size();
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
        if (m_reply.text.size() > before)
            forgetUsage();
        return {};
    }

    /// An empty reason, which some servers send with every piece, says nothing: the reply then ends with "[DONE]" alone.
    void finish(const json &choice)
    {
        const std::string reason = textMember(choice, "finish_reason");
        if (reason.empty() && m_finished)
            return;
        m_finished = !reason.empty();
        m_reply.stop = m_refused ? StopReason::Refusal : finishReason(reason);
    }

    /// What was counted before the last piece of text is not all.
    void forgetUsage()
    {
        m_reply.usageKnown = false;
        m_reply.usage = {};
    }

    /// Counts are totals so far, of which there may be several. Of the input the greatest counts; an output that shrinks is not believed.
    void readUsage(const json &usage)
    {
        bool wrong = !member(usage, "prompt_tokens") || !member(usage, "completion_tokens");
        m_prompt = std::max(m_prompt, tokenMember(usage, "prompt_tokens", wrong));
        const std::int64_t output = tokenMember(usage, "completion_tokens", wrong);
        wrong = wrong || output < m_output;
        m_output = std::max(m_output, output);
        const json *details = member(usage, "prompt_tokens_details");
        if (details) {
            m_cached = tokenMember(*details, "cached_tokens", wrong);
            m_written = tokenMember(*details, "cache_write_tokens", wrong);
        }
        forgetUsage();
        if (wrong || m_cached + m_written > m_prompt)
            return;
        m_reply.usageKnown = true;
        m_reply.usage = {m_prompt - m_cached - m_written, m_cached, m_written, m_output};
    }

    std::int64_t m_prompt = 0;
    std::int64_t m_cached = 0;
    std::int64_t m_written = 0;
    std::int64_t m_output = 0;
    std::optional<std::int64_t> m_choice; ///< the index of the one that is taken
    bool m_sawOthers = false;             ///< events with choices, but not that one
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
