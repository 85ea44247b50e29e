// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/tomlreader.h"

#include "core/base/suggest.h"
#include "core/files/tomltree.h"

#include <algorithm>
#include <cmath>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

std::string kindName(const Node &node)
{
    switch (node.kind) {
    case Node::Kind::String:
        return "a string";
    case Node::Kind::Integer:
        return "an integer";
    case Node::Kind::Float:
        return "a number with a fraction";
    case Node::Kind::Boolean:
        return "a boolean";
    case Node::Kind::Date:
        return "a date or time";
    case Node::Kind::Array:
        return "a list";
    case Node::Kind::Table:
        return "a table";
    }
    return "a value";
}

std::string wrongType(const std::string &key, const Node &node, const std::string &expected)
{
    return "'" + key + "' is " + kindName(node) + "; expected " + expected + ".";
}

std::string itemName(const char *key, std::size_t index)
{
    return std::string(key) + "[" + std::to_string(index) + "]";
}

} // namespace

TomlTable::TomlTable(const Node *node, Context *context)
    : m_node(node)
    , m_context(context)
{
    node->visited = true;
}

const TomlTable::Node *TomlTable::find(const char *key, bool required) const
{
    if (std::find(m_node->asked.begin(), m_node->asked.end(), key) == m_node->asked.end())
        m_node->asked.emplace_back(key);
    for (std::size_t i = 0; i < m_node->keys.size(); ++i) {
        if (m_node->keys[i] == key)
            return &m_node->items[i];
    }
    if (required)
        m_context->report(Context::Kind::MissingKey, m_node, m_node->position,
                          "the key '" + std::string(key) + "' is missing.");
    return nullptr;
}

bool TomlTable::has(const char *key) const
{
    return find(key, false) != nullptr;
}

void TomlTable::require(const char *key) const
{
    static_cast<void>(find(key, true));
}

TextPosition TomlTable::position(const char *key) const
{
    const Node *node = find(key, false);
    return node ? node->position : m_node->position;
}

TextPosition TomlTable::position() const
{
    return m_node->position;
}

void TomlTable::fail(const char *key, const std::string &message) const
{
    fail(position(key), message);
}

void TomlTable::fail(TextPosition where, const std::string &message) const
{
    m_context->report(Context::Kind::Value, m_node, where, message);
}

std::string TomlTable::string(const char *key) const
{
    return find(key, true) ? string(key, {}) : std::string();
}

std::string TomlTable::string(const char *key, std::string absent) const
{
    const Node *node = find(key, false);
    if (!node)
        return absent;
    if (node->kind != Node::Kind::String) {
        fail(key, wrongType(key, *node, "a string"));
        return absent;
    }
    return node->text;
}

std::int64_t TomlTable::integer(const char *key) const
{
    return find(key, true) ? integer(key, 0) : 0;
}

std::int64_t TomlTable::integer(const char *key, std::int64_t absent) const
{
    const Node *node = find(key, false);
    if (!node)
        return absent;
    if (node->kind != Node::Kind::Integer) {
        fail(key, wrongType(key, *node, "an integer"));
        return absent;
    }
    return node->integer;
}

double TomlTable::number(const char *key) const
{
    return find(key, true) ? number(key, 0.0) : 0.0;
}

double TomlTable::number(const char *key, double absent) const
{
    const Node *node = find(key, false);
    if (!node)
        return absent;
    if (node->kind != Node::Kind::Integer && node->kind != Node::Kind::Float) {
        fail(key, wrongType(key, *node, "a number"));
        return absent;
    }
    if (!std::isfinite(node->real)) {
        fail(key, "'" + std::string(key) + "' is not finite; expected a finite number.");
        return absent;
    }
    return node->real;
}

bool TomlTable::boolean(const char *key) const
{
    return find(key, true) ? boolean(key, false) : false;
}

bool TomlTable::boolean(const char *key, bool absent) const
{
    const Node *node = find(key, false);
    if (!node)
        return absent;
    if (node->kind != Node::Kind::Boolean) {
        fail(key, wrongType(key, *node, "true or false"));
        return absent;
    }
    return node->boolean;
}

TomlText TomlTable::text(const char *key) const
{
    if (!find(key, true))
        return {{}, m_node->position};
    return optionalText(key).value_or(TomlText{{}, position(key)});
}

std::optional<TomlText> TomlTable::optionalText(const char *key) const
{
    const Node *node = find(key, false);
    if (!node)
        return std::nullopt;
    if (node->kind != Node::Kind::String && node->kind != Node::Kind::Integer) {
        fail(key, wrongType(key, *node, "a string or an integer"));
        return std::nullopt;
    }
    return TomlText{node->text, node->position};
}

std::vector<TomlText> TomlTable::texts(const char *key) const
{
    std::vector<TomlText> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Array) {
        fail(key, wrongType(key, *node, "a list of strings or integers"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        const Node &item = node->items[i];
        if (item.kind == Node::Kind::String || item.kind == Node::Kind::Integer)
            values.push_back({item.text, item.position});
        else
            fail(item.position, wrongType(itemName(key, i), item, "a string or an integer"));
    }
    return values;
}

std::vector<std::string> TomlTable::strings(const char *key) const
{
    std::vector<std::string> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Array) {
        fail(key, wrongType(key, *node, "a list of strings"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        const Node &item = node->items[i];
        if (item.kind == Node::Kind::String)
            values.push_back(item.text);
        else
            fail(item.position, wrongType(itemName(key, i), item, "a string"));
    }
    return values;
}

std::vector<std::int64_t> TomlTable::integers(const char *key) const
{
    std::vector<std::int64_t> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Array) {
        fail(key, wrongType(key, *node, "a list of integers"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        const Node &item = node->items[i];
        if (item.kind == Node::Kind::Integer)
            values.push_back(item.integer);
        else
            fail(item.position, wrongType(itemName(key, i), item, "an integer"));
    }
    return values;
}

std::map<std::string, std::string> TomlTable::stringMap(const char *key) const
{
    std::map<std::string, std::string> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Table) {
        fail(key, wrongType(key, *node, "a table of strings"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        if (node->items[i].kind == Node::Kind::String)
            values[node->keys[i]] = node->items[i].text;
        else
            fail(node->items[i].position,
                 wrongType(std::string(key) + '.' + node->keys[i], node->items[i], "a string"));
    }
    return values;
}

std::map<std::string, std::int64_t> TomlTable::integerMap(const char *key) const
{
    std::map<std::string, std::int64_t> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Table) {
        fail(key, wrongType(key, *node, "a table of integers"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        if (node->items[i].kind == Node::Kind::Integer)
            values[node->keys[i]] = node->items[i].integer;
        else
            fail(node->items[i].position,
                 wrongType(std::string(key) + '.' + node->keys[i], node->items[i], "an integer"));
    }
    return values;
}

std::vector<std::pair<std::string, TomlTable>> TomlTable::namedTables(const char *key) const
{
    std::vector<std::pair<std::string, TomlTable>> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Table) {
        fail(key, wrongType(key, *node, "a table of tables"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        if (node->items[i].kind == Node::Kind::Table)
            values.emplace_back(node->keys[i], TomlTable(&node->items[i], m_context));
        else
            fail(node->items[i].position,
                 wrongType(std::string(key) + '.' + node->keys[i], node->items[i], "a table"));
    }
    return values;
}

std::vector<TomlTable> TomlTable::tables(const char *key) const
{
    std::vector<TomlTable> values;
    const Node *node = find(key, false);
    if (!node)
        return values;
    if (node->kind != Node::Kind::Array) {
        fail(key, wrongType(key, *node, "a list of tables, written [[" + std::string(key) + "]]"));
        return values;
    }
    for (std::size_t i = 0; i < node->items.size(); ++i) {
        if (node->items[i].kind == Node::Kind::Table)
            values.push_back(TomlTable(&node->items[i], m_context));
        else
            fail(node->items[i].position, wrongType(itemName(key, i), node->items[i], "a table"));
    }
    return values;
}

std::optional<TomlTable> TomlTable::table(const char *key) const
{
    const Node *node = find(key, false);
    if (!node)
        return std::nullopt;
    if (node->kind != Node::Kind::Table) {
        fail(key, wrongType(key, *node, "a table, written [" + std::string(key) + "]"));
        return std::nullopt;
    }
    return TomlTable(node, m_context);
}

std::size_t TomlTable::choiceIndex(const char *key, const std::vector<std::string> &words,
                                   std::optional<std::size_t> absent) const
{
    const Node *node = find(key, !absent);
    if (!node)
        return absent.value_or(0);
    const std::string expected = (words.size() == 1 ? "" : "one of ") + quotedList(words);
    if (node->kind != Node::Kind::String) {
        fail(key, wrongType(key, *node, expected));
        return absent.value_or(0);
    }
    const auto found = std::find(words.begin(), words.end(), node->text);
    if (found != words.end())
        return static_cast<std::size_t>(found - words.begin());
    fail(key, "'" + std::string(key) + "' is '" + node->text + "'; expected " + expected
                  + (nearestName(node->text, words).empty() ? "." : didYouMean(node->text, words)));
    return absent.value_or(0);
}

TomlDocument::TomlDocument(std::unique_ptr<TomlTable::Context> context)
    : m_context(std::move(context))
{}

TomlDocument::~TomlDocument() = default;
TomlDocument::TomlDocument(TomlDocument &&) noexcept = default;
TomlDocument &TomlDocument::operator=(TomlDocument &&) noexcept = default;

Result<TomlDocument> TomlDocument::parse(std::string_view text, const std::string &fileName, int firstLine,
                                         const TomlLimits &limits)
{
    Result<Node> root = parseTomlTree(text, fileName, firstLine, limits);
    if (!root)
        return tl::unexpected(root.error());
    auto context = std::make_unique<TomlTable::Context>();
    context->fileName = fileName;
    context->root = std::move(*root);
    return TomlDocument(std::move(context));
}

TomlTable TomlDocument::root() const
{
    return TomlTable(&m_context->root, m_context.get());
}

bool TomlDocument::ok() const
{
    return m_context->problems.empty();
}

} // namespace klineage::files
