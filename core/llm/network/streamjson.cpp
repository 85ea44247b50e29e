// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/llm/network/streamjson.h"

#include "core/llm/message.h"

#include <algorithm>
#include <charconv>

namespace klineage::llm {

using nlohmann::json;

namespace {

/// Deeper than any reply. Each level of a hostile text costs many times its byte.
bool isTooDeep(std::string_view text)
{
    constexpr int mostNested = 256;
    int depth = 0;
    bool isQuoted = false;
    for (std::size_t i = 0; i < text.size() && depth <= mostNested; ++i) {
        const char c = text[i];
        if (isQuoted && c == '\\')
            ++i;
        else if (c == '"')
            isQuoted = !isQuoted;
        else if (!isQuoted && (c == '{' || c == '['))
            ++depth;
        else if (!isQuoted && (c == '}' || c == ']'))
            --depth;
    }
    return depth > mostNested;
}

/// The code unit of the escape "\uXXXX" that the text begins with.
std::optional<unsigned> escapedUnit(std::string_view text)
{
    if (!text.starts_with("\\u") || text.size() < 6)
        return {};
    unsigned unit = 0;
    const auto [end, problem] = std::from_chars(text.data() + 2, text.data() + 6, unit, 16);
    if (problem != std::errc() || end != text.data() + 6)
        return {};
    return unit;
}

std::string withoutLoneHalves(std::string_view text)
{
    std::string result;
    while (!text.empty()) {
        const std::size_t at = text.find('\\');
        result += text.substr(0, at);
        text.remove_prefix(std::min(at, text.size()));
        const std::optional<unsigned> unit = escapedUnit(text);
        std::size_t length = unit ? 6 : 2;
        const bool isFirst = unit && *unit >= 0xd800 && *unit < 0xdc00;
        const bool isHalf = unit && *unit >= 0xd800 && *unit < 0xe000;
        const std::optional<unsigned> next = isFirst ? escapedUnit(text.substr(6)) : std::nullopt;
        const bool isPair = next && *next >= 0xdc00 && *next < 0xe000;
        if (isPair)
            length = 12;
        if (isHalf && !isPair)
            result += "\\ufffd";
        else
            result += text.substr(0, length);
        text.remove_prefix(std::min(length, text.size()));
    }
    return result;
}

} // namespace

json parseLeniently(std::string_view text)
{
    if (isTooDeep(text))
        return json(json::value_t::discarded);
    json value = json::parse(text, nullptr, false);
    if (value.is_discarded()) {
        const std::string mended = withoutLoneHalves(validUtf8(text));
        if (mended != text)
            value = json::parse(mended, nullptr, false);
    }
    return value;
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

} // namespace klineage::llm
