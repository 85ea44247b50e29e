// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlwriter.h"

#include "core/base/numbertext.h"

#include <fmt/core.h>

#include <algorithm>
#include <charconv>
#include <cmath>

namespace klineage::files {

namespace {

constexpr std::size_t widestLine = 110;

void appendEscaped(std::string &out, char c)
{
    switch (c) {
    case '"':
        out += "\\\"";
        return;
    case '\\':
        out += "\\\\";
        return;
    case '\t':
        out += "\\t";
        return;
    case '\r':
        out += "\\r";
        return;
    case '\n':
        out += "\\n";
        return;
    default:
        break;
    }
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte != 0x7f) {
        out += c;
        return;
    }
    out += fmt::format("\\u{:04X}", byte);
}

std::string oneLineString(std::string_view value)
{
    std::string text = "\"";
    for (const char c : value)
        appendEscaped(text, c);
    return text + '"';
}

/// An integer literal as our reader gives it back: no sign but '-', no leading zeros, in 64 bits.
bool isPlainInteger(std::string_view text)
{
    std::int64_t value = 0;
    const auto [end, status] = std::from_chars(text.data(), text.data() + text.size(), value);
    return status == std::errc() && end == text.data() + text.size() && std::to_string(value) == text;
}

std::string expressionText(std::string_view text)
{
    return isPlainInteger(text) ? std::string(text) : tomlString(text);
}

} // namespace

std::string tomlString(std::string_view value)
{
    if (value.find('\n') == std::string_view::npos)
        return oneLineString(value);
    std::string text = "\"\"\"\n";
    for (const char c : value) {
        if (c == '\n' || c == '\t')
            text += c;
        else
            appendEscaped(text, c);
    }
    return text + "\"\"\"";
}

std::string tomlKey(std::string_view key)
{
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
               || c == '-';
    });
    if (bare)
        return std::string(key);
    return oneLineString(key);
}

std::string tomlNumber(double value)
{
    if (std::isnan(value))
        return "nan"; // without its sign
    std::string text = shortestText(value);
    if (std::isfinite(value) && text.find_first_of(".e") == std::string::npos)
        text += ".0";
    return text;
}

std::string tomlInlineTable(const std::vector<std::pair<std::string, std::string>> &fields)
{
    std::string text = "{";
    for (const auto &[name, value] : fields)
        text += (text.size() > 1 ? ", " : " ") + tomlKey(name) + " = " + value;
    return text + " }";
}

void TomlWriter::written(std::string_view key, std::string_view value)
{
    m_text += tomlKey(key) + " = ";
    m_text += value;
    m_text += '\n';
}

void TomlWriter::beginTable(std::string_view name)
{
    m_text += m_text.empty() ? "[" : "\n[";
    m_text += name;
    m_text += "]\n";
}

void TomlWriter::beginArrayTable(std::string_view name)
{
    m_text += m_text.empty() ? "[[" : "\n[[";
    m_text += name;
    m_text += "]]\n";
}

void TomlWriter::stringTable(std::string_view name, const std::map<std::string, std::string> &values)
{
    if (values.empty())
        return;
    beginTable(name);
    for (const auto &[key, value] : values)
        string(key, value);
}

void TomlWriter::string(std::string_view key, std::string_view value)
{
    written(key, tomlString(value));
}

void TomlWriter::integer(std::string_view key, std::int64_t value)
{
    written(key, std::to_string(value));
}

void TomlWriter::number(std::string_view key, double value)
{
    written(key, tomlNumber(value));
}

void TomlWriter::boolean(std::string_view key, bool value)
{
    written(key, value ? "true" : "false");
}

void TomlWriter::expression(std::string_view key, std::string_view text)
{
    written(key, expressionText(text));
}

void TomlWriter::list(std::string_view key, const std::vector<std::string> &items)
{
    std::string joined = "[";
    for (std::size_t i = 0; i < items.size(); ++i)
        joined += (i > 0 ? ", " : "") + items[i];
    joined += ']';
    if (joined.size() + key.size() + 3 > widestLine && items.size() > 1) {
        joined = "[\n";
        for (const std::string &item : items)
            joined += "    " + item + ",\n";
        joined += ']';
    }
    written(key, joined);
}

void TomlWriter::strings(std::string_view key, const std::vector<std::string> &values)
{
    std::vector<std::string> items;
    for (const std::string &value : values)
        items.push_back(tomlString(value));
    list(key, items);
}

void TomlWriter::integers(std::string_view key, const std::vector<std::int64_t> &values)
{
    std::vector<std::string> items;
    for (const std::int64_t value : values)
        items.push_back(std::to_string(value));
    list(key, items);
}

void TomlWriter::expressions(std::string_view key, const std::vector<std::string> &texts)
{
    std::vector<std::string> items;
    for (const std::string &text : texts)
        items.push_back(expressionText(text));
    list(key, items);
}

void TomlWriter::stringMap(std::string_view key, const std::map<std::string, std::string> &values)
{
    std::vector<std::pair<std::string, std::string>> fields;
    for (const auto &[name, value] : values)
        fields.emplace_back(name, oneLineString(value)); // an inline table stays on one line in TOML 1.0
    written(key, tomlInlineTable(fields));
}

void TomlWriter::integerMap(std::string_view key, const std::map<std::string, std::int64_t> &values)
{
    std::vector<std::pair<std::string, std::string>> fields;
    for (const auto &[name, value] : values)
        fields.emplace_back(name, std::to_string(value));
    written(key, tomlInlineTable(fields));
}

void TomlWriter::optionalString(std::string_view key, std::string_view value)
{
    if (!value.empty())
        string(key, value);
}

void TomlWriter::optionalStrings(std::string_view key, const std::vector<std::string> &values)
{
    if (!values.empty())
        strings(key, values);
}

} // namespace klineage::files
