// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/secrets.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

namespace klineage::llm {

namespace {

constexpr std::string_view replacement = "[key]";
constexpr std::size_t shortestSecret = 8;
constexpr std::size_t longestKey = 4096;

bool isKeyCharacter(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '-' || c == '_'
           || c == '*' || c == '.';
}

/// "sk-…" with at least eight characters more, also when a server has starred a part of it.
std::string withoutLookalikes(std::string_view text)
{
    constexpr std::string_view beginning = "sk-";
    std::string result;
    for (;;) {
        const std::size_t at = text.find(beginning);
        if (at == std::string_view::npos)
            break;
        std::size_t end = at + beginning.size();
        while (end < text.size() && isKeyCharacter(text[end]))
            ++end;
        const bool startsWord = at == 0 || !isKeyCharacter(text[at - 1]);
        const bool isKey = startsWord && end - at >= beginning.size() + shortestSecret;
        result += text.substr(0, at);
        result += isKey ? replacement : text.substr(at, end - at);
        text.remove_prefix(end);
    }
    result += text;
    return result;
}

} // namespace

const char *keyVariable(std::string_view provider, bool onThisMachine)
{
    if (onThisMachine)
        return "KLINEAGE_LOCAL_API_KEY";
    return provider == "anthropic" ? "ANTHROPIC_API_KEY" : "OPENAI_API_KEY";
}

Result<std::string> findKey(std::string_view provider, bool onThisMachine, const KeyCallback &callback)
{
    std::string key = callback ? callback(provider) : std::string();
    const char *variable = keyVariable(provider, onThisMachine);
    if (const char *value = std::getenv(variable); key.empty() && value)
        key = value;
    // A line end inside would add headers to the request.
    const bool sound = std::all_of(key.begin(), key.end(), [](char c) { return c > ' ' && c < 0x7f; });
    if (!sound || key.size() > longestKey)
        return fail(ErrorCode::InvalidInput,
                    "The API key for '" + std::string(provider) + "' has characters that no key has.",
                    std::string("Look for blanks and line ends in ") + variable + " or in the keychain.");
    return key;
}

std::string scrubbed(std::string_view text, std::string_view key)
{
    std::string result(text);
    if (key.size() >= shortestSecret) {
        for (std::size_t at = 0; (at = result.find(key, at)) != std::string::npos; at += replacement.size())
            result.replace(at, key.size(), replacement);
    }
    return result;
}

Error scrubbed(const Error &error, std::string_view key)
{
    return {error.code, withoutLookalikes(scrubbed(error.message, key)),
            withoutLookalikes(scrubbed(error.detail, key))};
}

PiecewiseScrubber::PiecewiseScrubber(std::string key)
    : m_key(std::move(key))
{}

std::string PiecewiseScrubber::take(std::string_view piece)
{
    m_held += piece;
    if (m_key.size() < shortestSecret)
        return std::exchange(m_held, {});
    m_held = scrubbed(m_held, m_key);
    std::size_t held = std::min(m_held.size(), m_key.size() - 1);
    while (!m_held.ends_with(std::string_view(m_key).substr(0, held)))
        --held;
    std::string shown = m_held.substr(0, m_held.size() - held);
    m_held.erase(0, shown.size());
    return shown;
}

std::string PiecewiseScrubber::rest()
{
    return std::exchange(m_held, {});
}

} // namespace klineage::llm
