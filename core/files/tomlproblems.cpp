// SPDX-License-Identifier: GPL-3.0-or-later
// TomlDocument::finish(): from everything that went wrong in reading, the one problem that a person should
// see first.
#include "core/base/suggest.h"
#include "core/files/tomltree.h"

#include <algorithm>

namespace klineage::files {

namespace {

using Node = TomlTable::Node;

} // namespace

Status TomlDocument::finish() const
{
    using Kind = TomlTable::Context::Kind;
    using Problem = TomlTable::Context::Problem;
    std::vector<Problem> problems = m_context->problems;

    // Every key nobody asked for, in tables that were read. (Tables nobody read hang below such a key.)
    std::vector<const Node *> pending = {&m_context->root};
    while (!pending.empty()) {
        const Node *node = pending.back();
        pending.pop_back();
        for (const Node &item : node->items)
            pending.push_back(&item);
        if (node->kind != Node::Kind::Table || !node->visited)
            continue;
        for (std::size_t i = 0; i < node->keys.size(); ++i) {
            const std::string &key = node->keys[i];
            if (std::find(node->asked.begin(), node->asked.end(), key) != node->asked.end())
                continue;
            std::string hint = didYouMean(key, node->asked);
            if (hint.empty())
                hint = node->asked.empty() ? "." : "; expected one of " + quotedList(node->asked) + ".";
            problems.push_back(
                {Kind::UnknownKey, node->keyPositions[i], node, "the key '" + key + "' is unknown" + hint});
        }
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
