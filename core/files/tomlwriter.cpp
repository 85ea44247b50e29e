// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlwriter.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>

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
    char code[8] = {};
    std::snprintf(code, sizeof code, "\\u%04X", static_cast<unsigned>(byte));
    out += code;
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
    const bool multiLine = value.find('\n') != std::string_view::npos;
    std::string text = multiLine ? "\"\"\"\n" : "\"";
    for (const char c : value) {
        if (multiLine && (c == '\n' || c == '\t'))
            text += c;
        else
            appendEscaped(text, c);
    }
    text += multiLine ? "\"\"\"" : "\"";
    return text;
}

std::string tomlKey(std::string_view key)
{
    const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'
               || c == '-';
    });
    if (bare)
        return std::string(key);
    std::string text = "\"";
    for (const char c : key)
        appendEscaped(text, c);
    return text + '"';
}

std::string tomlNumber(double value)
{
    if (std::isnan(value))
        return "nan";
    if (std::isinf(value))
        return value > 0 ? "inf" : "-inf";
    char buffer[40] = {};
    const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
    std::string text(buffer, status == std::errc() ? end : buffer);
    if (text.find_first_of(".e") == std::string::npos)
        text += ".0";
    return text;
}

void TomlWriter::line(std::string_view key, std::string_view written)
{
    m_text += tomlKey(key) + " = ";
    m_text += written;
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

void TomlWriter::string(std::string_view key, std::string_view value)
{
    line(key, tomlString(value));
}

void TomlWriter::integer(std::string_view key, std::int64_t value)
{
    line(key, std::to_string(value));
}

void TomlWriter::number(std::string_view key, double value)
{
    line(key, tomlNumber(value));
}

void TomlWriter::boolean(std::string_view key, bool value)
{
    line(key, value ? "true" : "false");
}

void TomlWriter::expression(std::string_view key, std::string_view text)
{
    line(key, expressionText(text));
}

void TomlWriter::list(std::string_view key, const std::vector<std::string> &written)
{
    std::string joined = "[";
    for (std::size_t i = 0; i < written.size(); ++i)
        joined += (i > 0 ? ", " : "") + written[i];
    joined += ']';
    if (joined.size() + key.size() + 3 > widestLine && written.size() > 1) {
        joined = "[\n";
        for (const std::string &item : written)
            joined += "    " + item + ",\n";
        joined += ']';
    }
    line(key, joined);
}

void TomlWriter::strings(std::string_view key, const std::vector<std::string> &values)
{
    std::vector<std::string> written;
    for (const std::string &value : values)
        written.push_back(tomlString(value));
    list(key, written);
}

void TomlWriter::integers(std::string_view key, const std::vector<std::int64_t> &values)
{
    std::vector<std::string> written;
    for (const std::int64_t value : values)
        written.push_back(std::to_string(value));
    list(key, written);
}

void TomlWriter::expressions(std::string_view key, const std::vector<std::string> &texts)
{
    std::vector<std::string> written;
    for (const std::string &text : texts)
        written.push_back(expressionText(text));
    list(key, written);
}

void TomlWriter::stringMap(std::string_view key, const std::map<std::string, std::string> &values)
{
    std::string text = "{";
    for (const auto &[name, value] : values) {
        // An inline table stays on one line in TOML 1.0, so line breaks are escaped here.
        std::string escaped;
        for (const char c : value)
            appendEscaped(escaped, c);
        text += (text.size() > 1 ? ", " : " ") + tomlKey(name) + " = \"" + escaped + '"';
    }
    line(key, text + " }");
}

void TomlWriter::integerMap(std::string_view key, const std::map<std::string, std::int64_t> &values)
{
    std::string text = "{";
    for (const auto &[name, value] : values)
        text += (text.size() > 1 ? ", " : " ") + tomlKey(name) + " = " + std::to_string(value);
    line(key, text + " }");
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
