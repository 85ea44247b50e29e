// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomltree.h"

// The parser is compiled into this file alone, without exceptions, whatever way the library was installed.
#undef TOML_EXCEPTIONS
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#include <toml++/toml.h>
#if TOML_EXCEPTIONS
#error "something included the TOML library before this file could choose how it reports errors"
#endif

#include <algorithm>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

/// Finds dotted keys (`a.b.c.d…`) and brackets that are too deep before the library builds, and recursively destroys, a
/// table for each. Follows the text as the library does: strings and comments are skipped. Returns where, or nothing.
class NestingScan
{
public:
    NestingScan(std::string_view text, int maxNesting)
        : m_text(text)
        , m_maxNesting(maxNesting)
    {}

    std::optional<std::size_t> firstTooDeep()
    {
        int dots = 0;
        int brackets = 0;
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '"' || c == '\'') {
                skipString(c);
                continue;
            }
            if (c == '#')
                m_at = std::min(m_text.find('\n', m_at), m_text.size() - 1);
            else if (c == '.')
                ++dots;
            else if (std::string_view("=,{}[]").find(c) != std::string_view::npos)
                dots = 0;
            if (c == '[' || c == '{')
                ++brackets;
            else if (c == ']' || c == '}')
                --brackets;
            if (dots > m_maxNesting || brackets > m_maxNesting)
                return m_at;
            if (m_text[m_at] == '\n')
                dots = 0;
            ++m_at;
        }
        return std::nullopt;
    }

private:
    void skipString(char quote)
    {
        const std::string_view rest = m_text.substr(m_at);
        const std::string triple(3, quote);
        const bool multiLine = rest.starts_with(triple);
        m_at += multiLine ? 3 : 1;
        while (m_at < m_text.size()) {
            const char c = m_text[m_at];
            if (c == '\\' && quote == '"') {
                m_at += 2;
                continue;
            }
            if (!multiLine && (c == quote || c == '\n')) {
                m_at += c == quote ? 1 : 0;
                return;
            }
            if (multiLine && m_text.substr(m_at).starts_with(triple)) {
                m_at += 3;
                while (m_at < m_text.size() && m_text[m_at] == quote) // up to two quotes may end the content
                    ++m_at;
                return;
            }
            ++m_at;
        }
    }

    std::string_view m_text;
    int m_maxNesting;
    std::size_t m_at = 0;
};

TextPosition positionOf(const toml::source_region &source, int firstLine)
{
    if (source.begin.line == 0)
        return {};
    return {static_cast<int>(source.begin.line) + firstLine - 1, static_cast<int>(source.begin.column)};
}

TextPosition positionAt(std::string_view text, std::size_t offset, int firstLine)
{
    const std::string_view before = text.substr(0, offset);
    const auto lines = std::count(before.begin(), before.end(), '\n');
    const std::size_t lineStart = before.rfind('\n') + 1; // npos + 1 is 0
    return {static_cast<int>(lines) + firstLine, static_cast<int>(offset - lineStart) + 1};
}

/// The library's words without its opening: "not TOML, in array: expected a comma or ']', saw …".
std::string syntaxMessage(std::string description)
{
    constexpr std::string_view opening = "Error while parsing ";
    if (description.starts_with(opening))
        description = "in " + description.substr(opening.size());
    return "not TOML, " + description + '.';
}

/// Copies the library's tree into ours, within the limits.
class TreeCopy
{
public:
    TreeCopy(const std::string &fileName, int firstLine, const TomlLimits &limits)
        : m_fileName(fileName)
        , m_firstLine(firstLine)
        , m_limits(limits)
    {}

    std::optional<Error> error;

    Node copy(const toml::node &source, int depth)
    {
        Node node;
        node.position = positionOf(source.source(), m_firstLine);
        if (depth > m_limits.maxNesting)
            stop(node.position,
                 "values are nested more than " + std::to_string(m_limits.maxNesting) + " deep");
        else if (++m_items > m_limits.maxItems)
            stop(node.position, "the file has more than " + std::to_string(m_limits.maxItems) + " values");
        if (error)
            return node;

        if (const toml::table *table = source.as_table())
            copyTable(*table, node, depth);
        else if (const toml::array *array = source.as_array())
            copyArray(*array, node, depth);
        else
            copyScalar(source, node);
        return node;
    }

private:
    void stop(TextPosition position, const std::string &what)
    {
        if (!error)
            error = Error{ErrorCode::InvalidInput, located(m_fileName, position, what + "."), {}};
    }

    void copyTable(const toml::table &table, Node &node, int depth)
    {
        node.kind = Node::Kind::Table;
        // The library keeps keys sorted; messages should speak of the first one in the file.
        std::vector<std::pair<TextPosition, std::pair<std::string, const toml::node *>>> entries;
        for (const auto &[key, value] : table)
            entries.push_back({positionOf(key.source(), m_firstLine), {std::string(key.str()), &value}});
        std::stable_sort(entries.begin(), entries.end(),
                         [](const auto &a, const auto &b) { return a.first < b.first; });
        for (auto &[position, entry] : entries) {
            node.items.push_back(copy(*entry.second, depth + 1));
            node.keys.push_back(std::move(entry.first));
            node.keyPositions.push_back(position);
        }
    }

    void copyArray(const toml::array &array, Node &node, int depth)
    {
        node.kind = Node::Kind::Array;
        for (const toml::node &item : array) {
            node.items.push_back(copy(item, depth + 1));
            if (error)
                return;
        }
    }

    void copyScalar(const toml::node &source, Node &node)
    {
        if (const auto *string = source.as_string()) {
            node.kind = Node::Kind::String;
            node.text = string->get();
        } else if (const auto *integer = source.as_integer()) {
            node.kind = Node::Kind::Integer;
            node.integer = integer->get();
            node.real = static_cast<double>(node.integer);
            node.text = std::to_string(node.integer);
        } else if (const auto *real = source.as_floating_point()) {
            node.kind = Node::Kind::Float;
            node.real = real->get();
        } else if (const auto *boolean = source.as_boolean()) {
            node.kind = Node::Kind::Boolean;
            node.boolean = boolean->get();
        } else {
            node.kind = Node::Kind::Date;
        }
    }

    const std::string &m_fileName;
    int m_firstLine;
    const TomlLimits &m_limits;
    std::size_t m_items = 0;
};

} // namespace

Result<Node> parseTomlTree(std::string_view text, const std::string &fileName, int firstLine,
                           const TomlLimits &limits)
{
    const auto refuse = [&](TextPosition position, const std::string &message) {
        return fail(ErrorCode::InvalidInput, located(fileName, position, message));
    };
    if (text.size() > limits.maxBytes)
        return refuse({},
                      "the text is larger than the limit of " + std::to_string(limits.maxBytes) + " bytes.");
    if (const auto offset = NestingScan(text, limits.maxNesting).firstTooDeep())
        return refuse(positionAt(text, *offset, firstLine),
                      "values are nested more than " + std::to_string(limits.maxNesting) + " deep.");

    const toml::parse_result parsed = toml::parse(text);
    if (!parsed) {
        const toml::parse_error &problem = parsed.error();
        return refuse(positionOf(problem.source(), firstLine),
                      syntaxMessage(std::string(problem.description())));
    }
    TreeCopy copy(fileName, firstLine, limits);
    Node root = copy.copy(parsed.table(), 0);
    if (copy.error)
        return tl::unexpected(*copy.error);
    root.position = {firstLine, 1};
    return root;
}

} // namespace klineage::files
