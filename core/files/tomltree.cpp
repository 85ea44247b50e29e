// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomltree.h"

#include "core/files/tomlscan.h"

// The parser is compiled into this file alone, without exceptions, whatever way the library was installed.
// Its assertions stay on in every build, and throw: release builds would turn them into promises to the
// optimizer, and some malformed headers
// (`[=`) break them.
namespace {
struct BrokenTomlAssertion {};

constexpr void requireToml(bool holds)
{
    if (!holds)
        throw BrokenTomlAssertion();
}
} // namespace
#undef TOML_EXCEPTIONS
#undef TOML_HEADER_ONLY
#undef TOML_SHARED_LIB
#undef NDEBUG
#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#define TOML_ENABLE_FORMATTERS 0
#define TOML_ASSERT(condition) requireToml(static_cast<bool>(condition))
#include <toml++/toml.h>
#if TOML_EXCEPTIONS
#error "something included the TOML library before this file could choose how it reports errors"
#endif

#include <algorithm>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

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

/// The library's result, or nothing when the text broke one of its assertions.
std::optional<toml::parse_result> parseGuarded(std::string_view text)
{
    try {
        return toml::parse(text);
    } catch (const BrokenTomlAssertion &) {
        return std::nullopt;
    }
}

/// The library reads from front to back, so the first line with which it breaks is where the text is wrong.
TextPosition breakingLine(std::string_view text, int firstLine)
{
    std::vector<std::size_t> lineEnds;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\n' || at + 1 == text.size())
            lineEnds.push_back(at + 1);
    }
    const auto first = std::partition_point(lineEnds.begin(), lineEnds.end(), [text](std::size_t end) {
        return parseGuarded(text.substr(0, end)).has_value();
    });
    return {firstLine + static_cast<int>(first - lineEnds.begin()), 1};
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
    if (const auto finding = scanToml(text, limits.maxNesting))
        return refuse(positionAt(text, finding->offset, firstLine), finding->message);

    const std::optional<toml::parse_result> guarded = parseGuarded(text);
    if (!guarded)
        return refuse(breakingLine(text, firstLine),
                      "not TOML, expected a key, a [table] or a [[list of tables]] here.");
    const toml::parse_result &parsed = *guarded;
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
