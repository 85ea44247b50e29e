// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/jsonreader.h"

#include "core/base/suggest.h"
#include "core/files/formatnumber.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace klineage::files {

using nlohmann::json;

namespace {

[[noreturn]] void refuseValue(const JsonPath &path, std::string message)
{
    throw JsonFormatError{path, std::move(message), false};
}

std::string nameOf(const JsonPath &path)
{
    std::string name;
    for (const std::string &part : path)
        name += (name.empty() ? "" : ".") + part;
    return name.empty() ? "the record" : "'" + name + "'";
}

/// "is a string", "is an array", "is null"
std::string whatItIs(const json &value)
{
    if (value.is_null())
        return "is null";
    return std::string(value.is_array() || value.is_object() ? "is an " : "is a ") + value.type_name();
}

constexpr const char *formatKey = "format";

/// What a record says of its format; nothing where it says nothing.
std::optional<std::string> formatTextOf(const json &record)
{
    const auto found = record.find(formatKey);
    if (found == record.end())
        return std::nullopt;
    return found->is_string() ? found->get<std::string>() : found->dump();
}

/// Walks one line of JSON that a parser has already accepted.
class Scanner
{
public:
    explicit Scanner(std::string_view text)
        : m_text(text)
    {}

    std::size_t offsetOf(const JsonPath &path, bool atKey)
    {
        skipSpace();
        for (std::size_t depth = 0; depth < path.size(); ++depth) {
            const std::size_t keyOffset = enter(path[depth]);
            if (keyOffset == std::string_view::npos)
                return 0;
            if (atKey && depth + 1 == path.size())
                return keyOffset;
        }
        return m_at;
    }

private:
    char peek() const { return m_at < m_text.size() ? m_text[m_at] : '\0'; }

    void skipSpace()
    {
        while (m_at < m_text.size()
               && std::string_view(" \t\r\n").find(m_text[m_at]) != std::string_view::npos)
            ++m_at;
    }

    std::string_view skipString()
    {
        const std::size_t begin = m_at++;
        while (m_at < m_text.size() && m_text[m_at] != '"')
            m_at += m_text[m_at] == '\\' ? 2 : 1;
        m_at = std::min(m_at + 1, m_text.size());
        return m_text.substr(begin, m_at - begin);
    }

    void skipValue()
    {
        int depth = 0;
        do {
            skipSpace();
            const char c = peek();
            if (c == '"') {
                skipString();
            } else if (c == '{' || c == '[') {
                ++depth;
                ++m_at;
            } else if (c == '}' || c == ']') {
                --depth;
                ++m_at;
            } else {
                ++m_at;
                while (m_at < m_text.size()
                       && std::string_view(",:{}[]\" \t\r\n").find(peek()) == std::string_view::npos)
                    ++m_at;
            }
        } while (depth > 0 && m_at < m_text.size());
    }

    /// Moves to the value of a member or element; returns where its key (or the element) begins.
    std::size_t enter(const std::string &name)
    {
        const bool isObject = peek() == '{';
        if (!isObject && peek() != '[')
            return std::string_view::npos;
        ++m_at;
        for (std::size_t index = 0; m_at < m_text.size(); ++index) {
            skipSpace();
            if (peek() == '}' || peek() == ']')
                break;
            const std::size_t begin = m_at;
            bool found = !isObject && std::to_string(index) == name;
            if (isObject) {
                found = json::parse(skipString(), nullptr, false) == json(name);
                skipSpace();
                ++m_at; // the colon
                skipSpace();
            }
            if (found)
                return begin;
            skipValue();
            skipSpace();
            if (peek() == ',')
                ++m_at;
        }
        return std::string_view::npos;
    }

    std::string_view m_text;
    std::size_t m_at = 0;
};

} // namespace

JsonPath childPath(JsonPath path, std::string key)
{
    path.push_back(std::move(key));
    return path;
}

std::string readText(const json &value, const JsonPath &path, std::size_t limit)
{
    const std::string *text = value.get_ptr<const std::string *>();
    if (!text)
        refuseValue(path, nameOf(path) + ' ' + whatItIs(value) + "; a string was expected");
    if (text->size() > limit)
        refuseValue(path, fmt::format("{} is longer than {} bytes", nameOf(path), limit));
    return *text;
}

double readNumber(const json &value, const JsonPath &path)
{
    if (!value.is_number())
        refuseValue(path, nameOf(path) + ' ' + whatItIs(value) + "; a number was expected");
    const double number = value.get<double>();
    if (!std::isfinite(number))
        refuseValue(path, nameOf(path) + " is not finite");
    return number;
}

std::int64_t readInteger(const json &value, const JsonPath &path)
{
    if (!value.is_number_integer())
        refuseValue(path, nameOf(path) + ' ' + whatItIs(value) + "; a whole number was expected");
    constexpr auto most = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (value.is_number_unsigned() && value.get<std::uint64_t>() > most)
        refuseValue(path, nameOf(path) + " does not fit 64 bits with a sign");
    return value.get<std::int64_t>();
}

JsonReader::JsonReader(const json &object, JsonPath path)
    : m_object(object)
    , m_path(std::move(path))
{
    if (!object.is_object())
        refuseValue(m_path, nameOf(m_path) + ' ' + whatItIs(object) + "; an object was expected");
    if (const auto written = m_path.empty() ? formatTextOf(object) : std::nullopt) {
        std::string problem = formatProblem(parseFormatNumber(*written), written->substr(0, 64));
        if (!problem.empty())
            refuseValue({formatKey}, problem.substr(0, problem.size() - 1));
    }
}

const json *JsonReader::find(const std::string &key)
{
    m_known.push_back(key);
    const auto it = m_object.find(key);
    return it == m_object.end() ? nullptr : &*it;
}

const json &JsonReader::require(const std::string &key)
{
    const json *value = find(key);
    if (!value)
        refuseValue(m_path, "'" + key + "' is missing in " + nameOf(m_path));
    return *value;
}

std::string JsonReader::text(const std::string &key, std::size_t limit)
{
    return readText(require(key), pathOf(key), limit);
}

std::string JsonReader::optionalText(const std::string &key, std::size_t limit)
{
    const json *value = find(key);
    return value ? readText(*value, pathOf(key), limit) : std::string();
}

double JsonReader::number(const std::string &key)
{
    return readNumber(require(key), pathOf(key));
}

double JsonReader::optionalNumber(const std::string &key, double missing)
{
    const json *value = find(key);
    return value ? readNumber(*value, pathOf(key)) : missing;
}

std::int64_t JsonReader::integer(const std::string &key)
{
    return readInteger(require(key), pathOf(key));
}

bool JsonReader::boolean(const std::string &key)
{
    const json &value = require(key);
    if (!value.is_boolean())
        refuse(key, whatItIs(value) + "; true or false was expected");
    return value.get<bool>();
}

const json *JsonReader::optionalArray(const std::string &key, std::size_t limit)
{
    const json *value = find(key);
    if (!value)
        return nullptr;
    if (!value->is_array())
        refuse(key, whatItIs(*value) + "; an array was expected");
    if (value->size() > limit)
        refuse(key, "has more than " + std::to_string(limit) + " elements");
    return value;
}

const json *JsonReader::optionalObject(const std::string &key, std::size_t limit)
{
    const json *value = find(key);
    if (!value)
        return nullptr;
    if (!value->is_object())
        refuse(key, whatItIs(*value) + "; an object was expected");
    if (value->size() > limit)
        refuse(key, "has more than " + std::to_string(limit) + " members");
    return value;
}

void JsonReader::finish() const
{
    const std::optional<std::string> written = m_path.empty() ? formatTextOf(m_object) : std::nullopt;
    const std::optional<FormatNumber> format = written ? parseFormatNumber(*written) : std::nullopt;
    const bool isNewer = format && format->minor > 0;
    for (const auto &item : m_object.items()) {
        if (std::find(m_known.begin(), m_known.end(), item.key()) != m_known.end()
            || (written && item.key() == formatKey) || (isNewer && PassedOver::add({{item.key()}, *written})))
            continue;
        const std::string shown = item.key().substr(0, 64);
        throw JsonFormatError{pathOf(item.key()),
                              "unknown key '" + shown + "' in " + nameOf(m_path) + didYouMean(shown, m_known),
                              true};
    }
}

JsonPath JsonReader::pathOf(const std::string &key) const
{
    return childPath(m_path, key);
}

void JsonReader::refuse(const std::string &key, std::string message) const
{
    refuseValue(pathOf(key), nameOf(pathOf(key)) + ' ' + message);
}

int jsonColumn(std::string_view line, const JsonPath &path, bool atKey)
{
    return static_cast<int>(Scanner(line).offsetOf(path, atKey)) + 1;
}

Error jsonSyntaxError(const json::exception &problem, const std::string &where)
{
    std::string text = problem.what();
    std::size_t column = 1;
    if (const auto *syntax = dynamic_cast<const json::parse_error *>(&problem)) {
        column = std::max<std::size_t>(syntax->byte, 1);
        // "[json.exception…] parse error at line 1, column 7: syntax error while …": the position is said in our own form.
        const std::size_t marker = text.find("column ");
        const std::size_t colon = marker == std::string::npos ? marker : text.find(": ", marker);
        if (colon != std::string::npos)
            text = text.substr(colon + 2);
    } else if (const std::size_t bracket = text.find("] "); bracket != std::string::npos) {
        text = text.substr(bracket + 2); // a number out of the range of double
    }
    constexpr std::size_t longestQuote = 200; // the parser quotes the token, which can be as long as the line
    if (text.size() > longestQuote)
        text = text.substr(0, longestQuote) + "…";
    return Error{
        ErrorCode::InvalidInput, fmt::format("{}:{}: not a JSON object: {}.", where, column, text), {}};
}

Error jsonFormatError(const JsonFormatError &problem, std::string_view line, const std::string &where)
{
    const int column = jsonColumn(line, problem.path, problem.atKey);
    const char *end = problem.message.ends_with('?') ? "" : ".";
    return Error{
        ErrorCode::InvalidInput, fmt::format("{}:{}: {}{}", where, column, problem.message, end), {}};
}

} // namespace klineage::files
