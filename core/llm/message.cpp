// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/message.h"

#include "core/files/sha256.h"

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cmath>

namespace klineage::llm {

using nlohmann::json;

namespace {

constexpr std::array roles{Role::User, Role::Assistant};
constexpr std::array stopReasons{StopReason::End, StopReason::MaxTokens, StopReason::Refusal,
                                 StopReason::Other};

template <typename Words>
auto fromString(const Words &words, std::string_view name) -> std::optional<typename Words::value_type>
{
    for (const auto word : words) {
        if (name == toString(word))
            return word;
    }
    return {};
}

Status refuse(std::string why)
{
    return fail(ErrorCode::InvalidInput, "Cannot ask: " + std::move(why));
}

/// Up to 40 bytes of text around where two texts part, cut at characters.
std::string excerpt(std::string_view text, std::size_t at)
{
    constexpr std::size_t before = 16;
    constexpr std::size_t length = 40;
    const std::size_t begin = at > before ? at - before : 0;
    std::string piece(text.substr(std::min(begin, text.size()), length));
    const auto isContinuation = [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; };
    while (!piece.empty() && isContinuation(piece.front()))
        piece.erase(0, 1);
    std::replace(piece.begin(), piece.end(), '\n', ' ');
    return '\'' + validUtf8(piece) + '\'';
}

std::string textDifference(const std::string &what, std::string_view recorded, std::string_view now)
{
    const auto parted = std::mismatch(recorded.begin(), recorded.end(), now.begin(), now.end());
    const auto at = static_cast<std::size_t>(parted.first - recorded.begin());
    return fmt::format("{} differs at byte {}: {} was recorded, {} is asked now", what, at + 1,
                       excerpt(recorded, at), excerpt(now, at));
}

/// What decides the cost or the shape of the answer is not for a setting to say.
constexpr std::array ownMembers{"model",      "messages", "system",
                                "stream",     "n",        "stream_options",
                                "max_tokens", "best_of",  "max_completion_tokens"};

Status checkExtraBody(const std::string &text)
{
    constexpr auto mostNested = 200; // what is nested deeper cannot be written either
    const auto opened = std::count_if(text.begin(), text.end(), [](char c) { return c == '{' || c == '['; });
    json body(json::value_t::discarded);
    if (text.size() <= maxExtraBodyBytes && opened <= mostNested)
        body = json::parse(text, nullptr, false);
    if (!body.is_object())
        return refuse("the extra body is no JSON object of at most 64 KiB and 200 brackets.");
    for (const char *name : ownMembers) {
        if (body.contains(name))
            return refuse("the extra body has '" + std::string(name) + "', which is not its to say.");
    }
    return {};
}

std::string temperatureText(const std::optional<double> &temperature)
{
    return temperature ? json(*temperature).dump() : "the server's own";
}

} // namespace

const char *toString(Role role)
{
    return role == Role::User ? "user" : "assistant";
}

std::optional<Role> roleFromString(std::string_view name)
{
    return fromString(roles, name);
}

const char *toString(StopReason reason)
{
    switch (reason) {
    case StopReason::End:
        return "end";
    case StopReason::MaxTokens:
        return "max_tokens";
    case StopReason::Refusal:
        return "refusal";
    case StopReason::Other:
        return "other";
    }
    return "other";
}

std::optional<StopReason> stopReasonFromString(std::string_view name)
{
    return fromString(stopReasons, name);
}

bool isSane(const Usage &usage)
{
    const auto sane = [](std::int64_t tokens) { return tokens >= 0 && tokens <= maxUsageTokens; };
    return sane(usage.input) && sane(usage.cacheRead) && sane(usage.cacheWrite) && sane(usage.output);
}

std::string validUtf8(std::string_view text)
{
    const std::string quoted = json(text).dump(-1, ' ', false, json::error_handler_t::replace);
    return json::parse(quoted).get<std::string>();
}

Status checkRequest(const Request &request)
{
    constexpr std::size_t maxName = 256;
    if (request.purpose.size() > maxName || request.model.size() > maxName)
        return refuse("the purpose or the model's name is longer than 256 bytes.");
    if (request.messages.empty())
        return refuse("the request has no message.");
    if (request.messages.size() > maxMessages)
        return refuse("the request has more than " + std::to_string(maxMessages) + " messages.");
    std::size_t bytes = request.system.size();
    for (std::size_t i = 0; i < request.messages.size(); ++i) {
        const Message &message = request.messages[i];
        const Role expected = i % 2 == 0 ? Role::User : Role::Assistant;
        if (message.role != expected)
            return refuse(
                fmt::format("message {} is the {}'s; messages alternate, beginning with the user's.", i + 1,
                            toString(message.role)));
        if (message.text.empty())
            return refuse("message " + std::to_string(i + 1) + " is empty.");
        bytes += message.text.size();
    }
    if (request.messages.back().role != Role::User)
        return refuse("the last message is not the user's.");
    if (bytes > maxRequestBytes)
        return refuse(fmt::format("the prompt has {} bytes; at most {} are sent.", bytes, maxRequestBytes));
    if (request.maxOutputTokens < 1 || request.maxOutputTokens > maxOutputTokensLimit)
        return refuse(fmt::format("the limit of output tokens is {}; a number from 1 to {} was expected.",
                                  request.maxOutputTokens, maxOutputTokensLimit));
    if (request.temperature
        && !(std::isfinite(*request.temperature) && *request.temperature >= 0 && *request.temperature <= 2))
        return refuse("the temperature is not between 0 and 2.");
    if (!std::all_of(request.effort.begin(), request.effort.end(),
                     [](char c) { return (c >= 'a' && c <= 'z') || c == '_' || c == '-'; })
        || request.effort.size() > 32)
        return refuse("the effort is no word such as low, medium or high.");
    if (!request.extraBody.empty())
        return checkExtraBody(request.extraBody);
    return {};
}

std::string fingerprint(const Request &request)
{
    json messages = json::array();
    for (const Message &message : request.messages)
        messages.push_back({toString(message.role), message.text});
    json canonical{{"klineage_request", 1},
                   {"model", request.model},
                   {"system", request.system},
                   {"messages", std::move(messages)},
                   {"max_output_tokens", request.maxOutputTokens}};
    if (request.temperature)
        canonical["temperature"] = *request.temperature;
    if (!request.effort.empty())
        canonical["effort"] = request.effort;
    if (!request.extraBody.empty())
        canonical["extra_body"] = request.extraBody;
    return files::sha256Hex(canonical.dump(-1, ' ', false, json::error_handler_t::replace));
}

std::string firstDifference(const Request &recorded, const Request &now)
{
    if (fingerprint(recorded) == fingerprint(now))
        return {};
    if (recorded.model != now.model)
        return "the model is '" + validUtf8(now.model) + "', '" + validUtf8(recorded.model)
               + "' was recorded";
    if (recorded.system != now.system)
        return textDifference("the system prompt", recorded.system, now.system);
    const std::size_t shared = std::min(recorded.messages.size(), now.messages.size());
    for (std::size_t i = 0; i < shared; ++i) {
        const std::string what = "message " + std::to_string(i + 1);
        if (recorded.messages[i].role != now.messages[i].role)
            return what + " is the " + toString(now.messages[i].role) + "'s, the "
                   + toString(recorded.messages[i].role) + "'s was recorded";
        if (recorded.messages[i].text != now.messages[i].text)
            return textDifference(what, recorded.messages[i].text, now.messages[i].text);
    }
    if (recorded.messages.size() != now.messages.size())
        return fmt::format("there are {} messages, {} were recorded", now.messages.size(),
                           recorded.messages.size());
    if (recorded.maxOutputTokens != now.maxOutputTokens)
        return fmt::format("the limit of output tokens is {}, {} was recorded", now.maxOutputTokens,
                           recorded.maxOutputTokens);
    if (recorded.effort != now.effort)
        return "the effort is '" + validUtf8(now.effort) + "', '" + validUtf8(recorded.effort)
               + "' was recorded";
    if (recorded.extraBody != now.extraBody)
        return textDifference("the extra body", recorded.extraBody, now.extraBody);
    return "the temperature is " + temperatureText(now.temperature) + ", "
           + temperatureText(recorded.temperature) + " was recorded";
}

} // namespace klineage::llm
