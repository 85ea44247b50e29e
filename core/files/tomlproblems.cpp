// SPDX-License-Identifier: GPL-3.0-or-later
// TomlDocument::finish(): from everything that went wrong in reading, the one problem that a person should
// see first.
#include "core/base/suggest.h"
#include "core/files/formatnumber.h"
#include "core/files/tomltree.h"

#include <algorithm>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

/// A table with the way to it.
struct Visited {
    const Node *node = nullptr;
    std::vector<std::string> path;
};

struct UnknownKey {
    const Node *table = nullptr;
    TextPosition position;
    std::vector<std::string> path;
};

bool isAsked(const Node &table, const std::string &key)
{
    return std::find(table.asked.begin(), table.asked.end(), key) != table.asked.end();
}

/// Every key nobody asked for, in tables that were read. (Tables nobody read hang below such a key.)
std::vector<UnknownKey> unknownKeys(const Node &root)
{
    std::vector<UnknownKey> found;
    std::vector<Visited> pending = {{&root, {}}};
    while (!pending.empty()) {
        const Visited at = std::move(pending.back());
        pending.pop_back();
        const bool isTable = at.node->kind == Node::Kind::Table;
        for (std::size_t i = 0; i < at.node->items.size(); ++i) {
            std::vector<std::string> path = at.path;
            path.push_back(isTable ? at.node->keys[i] : std::to_string(i));
            if (isTable && at.node->visited && !isAsked(*at.node, at.node->keys[i]))
                found.push_back({at.node, at.node->keyPositions[i], path});
            pending.push_back({&at.node->items[i], std::move(path)});
        }
    }
    return found;
}

const Node *formatOf(const Node &root)
{
    const auto at = std::find(root.keys.begin(), root.keys.end(), "format");
    return at == root.keys.end() ? nullptr : &root.items[static_cast<std::size_t>(at - root.keys.begin())];
}

} // namespace

Status TomlDocument::finish() const
{
    using Kind = TomlTable::Context::Kind;
    using Problem = TomlTable::Context::Problem;
    std::vector<Problem> problems = m_context->problems;

    const Node *format = formatOf(m_context->root);
    const std::string written = !format                ? ""
                                : format->text.empty() ? "a value that is neither text nor number"
                                                       : format->text;
    const std::optional<FormatNumber> number = parseFormatNumber(written);
    // A reader that knows several formats asks for the key, and judges it.
    if (format && !isAsked(m_context->root, "format")) {
        if (const std::string problem = formatProblem(number, written); !problem.empty())
            return fail(ErrorCode::InvalidInput, located(m_context->fileName, format->position, problem));
    }
    const bool isNewer = format && number && number->minor > 0 && PassedOver::isListening();

    std::vector<UnknownKey> unknown = unknownKeys(m_context->root);
    std::erase_if(unknown,
                  [](const UnknownKey &key) { return key.path.size() == 1 && key.path[0] == "format"; });
    for (const UnknownKey &key : unknown) {
        if (isNewer)
            break;
        std::string hint = didYouMean(key.path.back(), key.table->asked);
        if (hint.empty())
            hint = key.table->asked.empty() ? "." : "; expected one of " + quotedList(key.table->asked) + ".";
        problems.push_back({Kind::UnknownKey, key.position, key.table,
                            "the key '" + key.path.back() + "' is unknown" + hint});
    }
    if (problems.empty() && isNewer) {
        std::sort(unknown.begin(), unknown.end(),
                  [](const UnknownKey &a, const UnknownKey &b) { return a.position < b.position; });
        for (UnknownKey &key : unknown)
            PassedOver::add({std::move(key.path), written});
    }
    if (problems.empty())
        return {};

    // A misspelt key is both unknown and missing: the unknown one says where and what to write.
    const auto hasUnknownKey = [&problems](const Node *table) {
        return std::any_of(problems.begin(), problems.end(), [table](const Problem &problem) {
            return problem.kind == Kind::UnknownKey && problem.table == table;
        });
    };
    const auto first =
        std::min_element(problems.begin(), problems.end(), [&](const Problem &a, const Problem &b) {
            const bool aShadowed = a.kind == Kind::MissingKey && hasUnknownKey(a.table);
            const bool bShadowed = b.kind == Kind::MissingKey && hasUnknownKey(b.table);
            if (aShadowed != bShadowed)
                return bShadowed;
            return a.position < b.position;
        });
    return fail(ErrorCode::InvalidInput, located(m_context->fileName, first->position, first->message));
}

} // namespace klineage::files
