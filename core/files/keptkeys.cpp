// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/files/keptkeys.h"

#include "core/files/tomltree.h"
#include "core/files/tomlwriter.h"

#include <algorithm>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

const Node *childOf(const Node &table, const std::string &key)
{
    const auto at = std::find(table.keys.begin(), table.keys.end(), key);
    return at == table.keys.end() ? nullptr : &table.items[static_cast<std::size_t>(at - table.keys.begin())];
}

/// The value as a key's; nothing when it is, or has in it, a date.
std::optional<std::string> written(const Node &node)
{
    switch (node.kind) {
    case Node::Kind::String:
        return tomlString(node.text);
    case Node::Kind::Integer:
        return node.text;
    case Node::Kind::Float:
        return tomlNumber(node.real);
    case Node::Kind::Boolean:
        return node.boolean ? "true" : "false";
    case Node::Kind::Date:
        return std::nullopt;
    case Node::Kind::Array:
    case Node::Kind::Table:
        break;
    }
    std::vector<std::pair<std::string, std::string>> fields;
    std::string list;
    for (std::size_t i = 0; i < node.items.size(); ++i) {
        const std::optional<std::string> item = written(node.items[i]);
        if (!item)
            return std::nullopt;
        list += (list.empty() ? "" : ", ") + *item;
        if (node.kind == Node::Kind::Table)
            fields.emplace_back(node.keys[i], *item);
    }
    return node.kind == Node::Kind::Table ? tomlInlineTable(fields) : '[' + list + ']';
}

/// The element of a list that an element of the old one has become.
const Node *elementLike(const Node &list, const Node &element, std::size_t index)
{
    const bool isNamed = element.kind == Node::Kind::Table && !element.keys.empty()
                         && element.items[0].kind == Node::Kind::String;
    if (!isNamed)
        return index < list.items.size() ? &list.items[index] : nullptr;
    const auto found = std::find_if(list.items.begin(), list.items.end(), [&](const Node &other) {
        const Node *name = other.kind == Node::Kind::Table ? childOf(other, element.keys[0]) : nullptr;
        return name && name->kind == Node::Kind::String && name->text == element.items[0].text;
    });
    return found == list.items.end() ? nullptr : &*found;
}

/// The table in the new text that the key's table has become; nothing when it is gone.
const Node *tableLike(const Node &before, const Node &after, const std::vector<std::string> &path,
                      const Node *&value)
{
    const Node *from = &before;
    const Node *to = &after;
    for (std::size_t i = 0; i + 1 < path.size() && from; ++i) {
        if (from->kind == Node::Kind::Array) {
            const std::size_t index = std::stoul(path[i]);
            const Node *next = index < from->items.size() ? &from->items[index] : nullptr;
            to = to && next && to->kind == Node::Kind::Array ? elementLike(*to, *next, index) : nullptr;
            from = next;
        } else {
            from = childOf(*from, path[i]);
            to = to && to->kind == Node::Kind::Table ? childOf(*to, path[i]) : nullptr;
        }
    }
    value = from ? childOf(*from, path.back()) : nullptr;
    return to && to->kind == Node::Kind::Table ? to : nullptr;
}

/// Where line begins, counted from 1; the end of the text when it has fewer.
std::size_t lineStart(const std::string &text, int line)
{
    std::size_t at = 0;
    for (int i = 1; i < line && at < text.size(); ++i)
        at = std::min(text.find('\n', at), text.size() - 1) + 1;
    return at;
}

/// A line of its own for what the root or the table with the header at this place gets.
struct Insertion {
    std::size_t offset = 0;
    std::string text;
};

} // namespace

Result<std::string> withKeptKeys(const std::string &before, const std::string &after,
                                 const PassedOver &passedOver)
{
    const Result<Node> old = parseTomlTree(before, "the old text", 1, {});
    const Result<Node> fresh = parseTomlTree(after, "the new text", 1, {});
    if (!old || !fresh)
        return tl::unexpected(old ? fresh.error() : old.error());
    std::string head;
    const Node *format = childOf(*old, "format");
    const std::optional<std::string> said = format ? written(*format) : std::nullopt;
    std::string text = after;
    if (said && !childOf(*fresh, "format"))
        head = "format = " + *said + '\n';
    else if (said && !passedOver.keys().empty() && after.starts_with("format = "))
        text.replace(0, after.find('\n'), "format = " + *said);
    const auto moved = static_cast<std::ptrdiff_t>(text.size()) - static_cast<std::ptrdiff_t>(after.size());

    std::vector<Insertion> insertions;
    for (const PassedOver::Key &key : passedOver.keys()) {
        const Node *value = nullptr;
        const Node *table = tableLike(*old, *fresh, key.path, value);
        if (!value || !table)
            continue;
        const std::optional<std::string> line = written(*value);
        const bool isRoot = table == &*fresh;
        std::size_t at = isRoot ? 0 : lineStart(after, table->position.line);
        const bool hasHeader = isRoot || (at < after.size() && after[at] == '[');
        if (!line || !hasHeader)
            return fail(ErrorCode::InvalidInput,
                        "The key '" + key.path.back()
                            + "' of a newer format cannot be kept; change the file with the program "
                              "that wrote it.");
        if (isRoot)
            head += tomlKey(key.path.back()) + " = " + *line + '\n';
        else
            insertions.push_back(
                {static_cast<std::size_t>(
                     static_cast<std::ptrdiff_t>(lineStart(after, table->position.line + 1)) + moved),
                 tomlKey(key.path.back()) + " = " + *line + '\n'});
    }
    std::stable_sort(insertions.begin(), insertions.end(),
                     [](const Insertion &a, const Insertion &b) { return a.offset < b.offset; });
    for (auto it = insertions.rbegin(); it != insertions.rend(); ++it)
        text.insert(it->offset, it->text);
    if (!text.starts_with("format = "))
        return head + text;
    const std::size_t first = text.find('\n') + 1;
    return text.substr(0, first) + head + text.substr(first);
}

} // namespace klineage::files
