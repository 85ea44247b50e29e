// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/interop/cards/frontmatter.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace klineage::interop {

using nlohmann::json;

namespace {

constexpr std::size_t maxFrontBytes = std::size_t{64} << 10;
constexpr int maxYamlDepth = 8;

struct YamlLine {
    std::size_t number = 0;
    std::size_t indent = 0;
    std::string text; ///< without the indent and blanks at the end
    bool isBlank() const { return text.empty(); }
};

/// Thrown and caught in this file.
struct YamlError {
    std::size_t line;
    std::string message;
};

std::string_view nextYamlLine(std::string_view &text)
{
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.ends_with('\r'))
        line.remove_suffix(1);
    return line;
}

std::string trimmedYaml(std::string_view text)
{
    const std::size_t begin = text.find_first_not_of(" \t");
    if (begin == std::string_view::npos)
        return {};
    return std::string(text.substr(begin, text.find_last_not_of(" \t") - begin + 1));
}

bool isKeyCharacter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-'
           || c == '.';
}

/// The length of "key:" at the beginning of a line; 0 when there is none.
std::size_t keyLength(std::string_view text)
{
    std::size_t at = 0;
    if (!text.empty() && (text[0] == '"' || text[0] == '\'')) {
        at = text.find(text[0], 1);
        if (at == std::string_view::npos)
            return 0;
        ++at;
    } else {
        while (at < text.size() && isKeyCharacter(text[at]))
            ++at;
    }
    const bool ends = at + 1 == text.size() || (at + 1 < text.size() && text[at + 1] == ' ');
    return at > 0 && at < text.size() && text[at] == ':' && ends ? at + 1 : 0;
}

/// A plain scalar ends where a comment begins.
std::string withoutComment(const std::string &text)
{
    const std::size_t at = text.find(" #");
    return trimmedYaml(std::string_view(text).substr(0, at));
}

/// Scalars and what stands in brackets, on one line.
class FlowReader
{
public:
    FlowReader(std::string_view text, std::size_t line)
        : m_text(text)
        , m_line(line)
    {}

    json value(int depth)
    {
        if (depth > maxYamlDepth)
            refuse("it is nested too deep");
        skip();
        if (at('['))
            return list(depth);
        if (at('{'))
            return mapping(depth);
        if (at('"') || at('\''))
            return quoted();
        const std::size_t end = std::min(m_text.find_first_of(",[]{}"), m_text.size());
        const std::string text = trimmedYaml(m_text.substr(0, end));
        m_text.remove_prefix(end);
        return text;
    }
    void end()
    {
        skip();
        if (!m_text.empty() && m_text[0] != '#')
            refuse("something follows the value");
    }
    std::string quoted()
    {
        const char quote = m_text[0];
        std::size_t end = 1;
        while (end < m_text.size() && m_text[end] != quote)
            end += quote == '"' && m_text[end] == '\\' ? 2 : 1;
        while (quote == '\'' && m_text.substr(end).starts_with("''"))
            end = std::min(m_text.find('\'', end + 2), m_text.size());
        if (end >= m_text.size())
            refuse("a quoted text does not end on its line");
        const std::string_view inside = m_text.substr(1, end - 1);
        const std::string_view whole = m_text.substr(0, end + 1);
        m_text.remove_prefix(end + 1);
        if (quote == '"') {
            const json parsed = json::parse(whole, nullptr, false);
            if (!parsed.is_string())
                refuse("a quoted text has an escape that is not understood");
            return parsed.get<std::string>();
        }
        std::string text;
        for (std::size_t i = 0; i < inside.size(); ++i) {
            text += inside[i];
            i += inside.substr(i).starts_with("''") ? 1 : 0;
        }
        return text;
    }

private:
    [[noreturn]] void refuse(const char *what) const { throw YamlError{m_line, what}; }
    bool at(char c) const { return !m_text.empty() && m_text[0] == c; }
    void skip() { m_text.remove_prefix(std::min(m_text.find_first_not_of(" \t\n"), m_text.size())); }

    json list(int depth)
    {
        json out = json::array();
        m_text.remove_prefix(1);
        for (skip(); !at(']'); skip()) {
            out.push_back(value(depth + 1));
            skip();
            if (at(','))
                m_text.remove_prefix(1);
            else if (!at(']'))
                refuse("a list in brackets is not closed");
        }
        m_text.remove_prefix(1);
        return out;
    }
    json mapping(int depth)
    {
        json out = json::object();
        m_text.remove_prefix(1);
        for (skip(); !at('}'); skip()) {
            const std::size_t length = keyLength(m_text);
            if (length == 0)
                refuse("a mapping in braces has no key where one is expected");
            std::string key = trimmedYaml(m_text.substr(0, length - 1));
            if (key.size() >= 2 && (key[0] == '"' || key[0] == '\''))
                key = key.substr(1, key.size() - 2);
            m_text.remove_prefix(length);
            out[key] = value(depth + 1);
            skip();
            if (at(','))
                m_text.remove_prefix(1);
            else if (!at('}'))
                refuse("a mapping in braces is not closed");
        }
        m_text.remove_prefix(1);
        return out;
    }

    std::string_view m_text;
    std::size_t m_line;
};

class YamlReader
{
public:
    explicit YamlReader(std::vector<YamlLine> lines)
        : m_lines(std::move(lines))
    {}

    json document()
    {
        skipBlanks();
        if (m_at == m_lines.size())
            return json::object();
        json value = mapping(m_lines[m_at].indent, 0);
        skipBlanks();
        if (m_at < m_lines.size())
            refuse("its indent fits nothing before it");
        return value;
    }

private:
    [[noreturn]] void refuse(const char *what) const
    {
        throw YamlError{m_lines[std::min(m_at, m_lines.size() - 1)].number, what};
    }
    void skipBlanks()
    {
        while (m_at < m_lines.size() && (m_lines[m_at].isBlank() || m_lines[m_at].text[0] == '#'))
            ++m_at;
    }
    static bool isItem(const YamlLine &line) { return line.text == "-" || line.text.starts_with("- "); }

    json mapping(std::size_t indent, int depth)
    {
        if (depth > maxYamlDepth)
            refuse("it is nested too deep");
        json out = json::object();
        for (skipBlanks(); m_at < m_lines.size() && m_lines[m_at].indent == indent && !isItem(m_lines[m_at]);
             skipBlanks()) {
            const std::string text = m_lines[m_at].text;
            const std::size_t length = keyLength(text);
            if (length == 0)
                refuse("a key and a colon are expected");
            std::string key = text.substr(0, length - 1);
            if (key[0] == '"' || key[0] == '\'')
                key = key.substr(1, key.size() - 2);
            if (out.contains(key))
                refuse("the key is there twice");
            out[key] = value(trimmedYaml(std::string_view(text).substr(length)), indent, depth);
        }
        if (m_at < m_lines.size() && m_lines[m_at].indent > indent)
            refuse("its indent fits nothing before it");
        return out;
    }

    json list(std::size_t indent, int depth)
    {
        if (depth > maxYamlDepth)
            refuse("it is nested too deep");
        json out = json::array();
        for (skipBlanks(); m_at < m_lines.size() && m_lines[m_at].indent == indent && isItem(m_lines[m_at]);
             skipBlanks()) {
            const std::string rest = trimmedYaml(std::string_view(m_lines[m_at].text).substr(1));
            const bool isMapping = !rest.empty() && rest[0] != '"' && rest[0] != '\'' && keyLength(rest) > 0;
            if (!isMapping) {
                out.push_back(value(rest, indent, depth));
                continue;
            }
            YamlLine &line = m_lines[m_at]; // "- key: …": the rest is a mapping's first line
            line.indent += line.text.size() - rest.size();
            line.text = rest;
            out.push_back(mapping(line.indent, depth + 1));
        }
        return out;
    }

    /// What follows a key or a dash on line m_at, and the lines below that belong to it.
    json value(std::string rest, std::size_t indent, int depth)
    {
        if (rest.empty() || rest[0] == '#')
            return below(indent, depth);
        if (rest[0] == '|' || rest[0] == '>')
            return block(rest[0] == '>', indent);
        if (std::string_view("&*!%@`").find(rest[0]) != std::string_view::npos)
            refuse("anchors, aliases and tags are not understood");
        const std::size_t line = m_lines[m_at].number;
        if (rest[0] == '[' || rest[0] == '{') {
            // Brackets may close some lines below.
            for (++m_at; !isClosed(rest) && m_at < m_lines.size(); ++m_at)
                rest += '\n' + m_lines[m_at].text;
            FlowReader reader(rest, line);
            json out = reader.value(depth);
            reader.end();
            return out;
        }
        ++m_at;
        if (rest[0] == '"' || rest[0] == '\'') {
            FlowReader reader(rest, line);
            json out = reader.quoted();
            reader.end();
            return out;
        }
        std::string text = withoutComment(rest);
        for (skipBlanks(); m_at < m_lines.size() && m_lines[m_at].indent > indent; skipBlanks())
            text += ' ' + withoutComment(m_lines[m_at++].text);
        return text;
    }

    json below(std::size_t indent, int depth)
    {
        ++m_at;
        skipBlanks();
        if (m_at == m_lines.size())
            return "";
        const YamlLine &next = m_lines[m_at];
        if (isItem(next) && next.indent >= indent)
            return list(next.indent, depth + 1);
        if (next.indent <= indent)
            return "";
        return keyLength(next.text) > 0 ? mapping(next.indent, depth + 1) : plain(indent);
    }

    json plain(std::size_t indent)
    {
        std::string text;
        for (; m_at < m_lines.size() && m_lines[m_at].indent > indent; ++m_at)
            text += (text.empty() ? "" : " ") + withoutComment(m_lines[m_at].text);
        return text;
    }

    json block(bool folds, std::size_t indent)
    {
        ++m_at;
        std::size_t own = std::string::npos;
        std::string text;
        for (; m_at < m_lines.size() && (m_lines[m_at].isBlank() || m_lines[m_at].indent > indent); ++m_at) {
            const YamlLine &line = m_lines[m_at];
            if (!line.isBlank())
                own = std::min(own, line.indent);
            const std::size_t extra = line.isBlank() ? 0 : line.indent - own;
            text += std::string(extra, ' ') + line.text + (folds && !line.isBlank() ? ' ' : '\n');
        }
        text.erase(text.find_last_not_of(" \n") + 1);
        return text;
    }

    static bool isClosed(std::string_view text)
    {
        int open = 0;
        char quote = 0;
        for (const char c : text) {
            if (quote != 0)
                quote = c == quote ? 0 : quote;
            else if (c == '"' || c == '\'')
                quote = c;
            else
                open += (c == '[' || c == '{') - (c == ']' || c == '}');
        }
        return open <= 0;
    }

    std::vector<YamlLine> m_lines;
    std::size_t m_at = 0;
};

tl::unexpected<Error> yamlProblem(std::size_t line, const std::string &what)
{
    return fail(ErrorCode::InvalidInput,
                "Line " + std::to_string(line) + " of its front matter: " + what + '.');
}

} // namespace

Result<FrontMatter> parseFrontMatter(std::string_view text)
{
    if (text.starts_with("\xef\xbb\xbf"))
        text.remove_prefix(3);
    if (trimmedYaml(nextYamlLine(text)) != "---")
        return fail(ErrorCode::InvalidInput, "It does not begin with front matter (a line '---').");
    std::vector<YamlLine> lines;
    std::size_t bytes = 0;
    for (std::size_t number = 2;; ++number) {
        if (text.empty())
            return yamlProblem(number, "it ends before a closing line '---'");
        const std::string_view line = nextYamlLine(text);
        bytes += line.size() + 1;
        if (bytes > maxFrontBytes)
            return yamlProblem(number, "there is more than 64 KiB");
        if (line == "---" || line == "...")
            break;
        const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
        if (indent < line.size() && line[indent] == '\t')
            return yamlProblem(number, "a tab cannot indent");
        lines.push_back({number, indent, trimmedYaml(line)});
    }
    FrontMatter result;
    try {
        result.values = YamlReader(std::move(lines)).document();
    } catch (const YamlError &problem) {
        return yamlProblem(problem.line, problem.message);
    }
    while (!text.empty())
        result.body.append(nextYamlLine(text)) += '\n';
    return result;
}

std::vector<std::string> textsIn(const json &value)
{
    if (value.is_string())
        return value.get_ref<const std::string &>().empty() ? std::vector<std::string>()
                                                            : std::vector{value.get<std::string>()};
    std::vector<std::string> out;
    if (value.is_array()) {
        for (const json &part : value) {
            std::string joined;
            for (const std::string &text : textsIn(part))
                joined += (joined.empty() ? "" : "; ") + text;
            if (!joined.empty())
                out.push_back(std::move(joined));
        }
    } else if (value.is_object()) {
        for (const auto &[key, part] : value.items()) {
            for (const std::string &text : textsIn(part))
                out.push_back(key + ": " + text);
        }
    } else if (value.is_number() || value.is_boolean()) {
        out.push_back(value.dump());
    }
    return out;
}

std::string textOf(const json &object, const char *key)
{
    const auto found = object.is_object() ? object.find(key) : object.end();
    if (!object.is_object() || found == object.end())
        return {};
    std::string joined;
    for (const std::string &text : textsIn(*found))
        joined += (joined.empty() ? "" : "\n") + text;
    return joined;
}

} // namespace klineage::interop
