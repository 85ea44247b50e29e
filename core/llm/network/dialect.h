// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/llm/network/sse.h"
#include "core/llm/provider.h"

#include <nlohmann/json_fwd.hpp>

namespace klineage::llm {

/// What a server said, to be shown to a person: UTF-8 without control characters but line ends and tabs.
[[nodiscard]] std::string printable(std::string_view text);

/// What an API says in its {"error": {"type": …, "message": …}}, in the first of a list of these, or in {"object": "error", "message": …}.
struct ApiError {
    std::string type;
    std::string message;
};
/// Nothing when the text is no such object.
[[nodiscard]] std::optional<ApiError> parseApiError(std::string_view text);
[[nodiscard]] std::optional<ApiError> apiErrorOf(const nlohmann::json &value);

/// Puts one reply together from the events of its stream. What the server sends is hostile: sizes are limited, anything else than the
/// API's shapes is an Error.
class StreamDecoder
{
public:
    virtual ~StreamDecoder() = default;
    /// True when the reply is whole; nothing may come after it. Errors: Protocol; Unavailable when the server says that it failed.
    [[nodiscard]] virtual Result<bool> take(const SseEvent &event, const TextCallback &onText) = 0;
    /// Whether the reply can be taken as whole although the stream ended without saying so: it had said why the reply ends.
    [[nodiscard]] virtual bool isWholeAtEnd() const = 0;
    /// The answer of a server that does not stream although it was asked to: one JSON object, whole or an Error.
    [[nodiscard]] virtual Status takeWhole(std::string_view body, const TextCallback &onText) = 0;

    [[nodiscard]] Reply &reply() { return m_reply; }

protected:
    /// Appends text and hands it on; Protocol when the reply grows over maxReplyBytes.
    [[nodiscard]] Status append(std::string_view text, const TextCallback &onText);
    /// The same of a content: a text, or a list of texts and of parts with a text ({"type": "text", "text": …}); parts of other types
    /// (thoughts) are passed over. Protocol when it is neither.
    [[nodiscard]] Status appendContent(const nlohmann::json &content, const TextCallback &onText);
    /// Protocol, or Unavailable when it holds the server's own error.
    [[nodiscard]] static Error notWhole(std::string_view body);
    /// Unavailable: the server says in its stream that it failed.
    [[nodiscard]] static Error brokenOff(const ApiError &error);

    Reply m_reply;
};

/// What differs between the two APIs: addresses, headers, bodies, streams. Pure; no network, no keys kept.
class Dialect
{
public:
    virtual ~Dialect() = default;
    [[nodiscard]] virtual std::string name() const = 0;
    [[nodiscard]] virtual std::string defaultBaseUrl() const = 0;
    [[nodiscard]] virtual std::string path() const = 0; ///< after the base URL
    [[nodiscard]] virtual std::vector<std::string> headers(
        const std::string &key) const = 0; ///< key may be empty
    [[nodiscard]] virtual std::string body(const Request &request) const = 0;
    [[nodiscard]] virtual std::unique_ptr<StreamDecoder> decoder() const = 0;
};

/// Anthropic's Messages API.
[[nodiscard]] std::unique_ptr<Dialect> makeAnthropicDialect();
/// OpenAI's chat completions, which vLLM, Ollama and llama.cpp speak too. Other servers than OpenAI's own know only the older name of
/// the limit of output tokens.
[[nodiscard]] std::unique_ptr<Dialect> makeOpenAiDialect(bool isOpenAi);

/// The settings that go into a body as they are; what the body has already stays.
void addExtraBody(const Request &request, nlohmann::json &body);

} // namespace klineage::llm
