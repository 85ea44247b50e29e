// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/kernel/outline/declarations.h"

#include <algorithm>

namespace klineage::kernel {

namespace {

bool opens(const CodeToken &token)
{
    return token.is("(") || token.is("[") || token.is("{");
}

bool closes(const CodeToken &token)
{
    return token.is(")") || token.is("]") || token.is("}");
}

bool anyIs(std::span<const CodeToken> tokens, std::string_view word)
{
    return std::any_of(tokens.begin(), tokens.end(), [word](const CodeToken &t) { return t.is(word); });
}

} // namespace

std::size_t pastClosingSign(std::span<const CodeToken> tokens, std::size_t i)
{
    int depth = 0;
    for (; i < tokens.size(); ++i) {
        depth += opens(tokens[i]) ? 1 : closes(tokens[i]) ? -1 : 0;
        if (depth <= 0)
            return i + 1;
    }
    return tokens.size();
}

std::span<const CodeToken> insideSigns(std::span<const CodeToken> tokens, std::size_t i)
{
    const std::size_t past = pastClosingSign(tokens, i);
    const bool isClosed = past > i + 1 && closes(tokens[past - 1]);
    return tokens.subspan(std::min(i + 1, tokens.size()), past - std::min(i + 1, past) - (isClosed ? 1 : 0));
}

void forEachDeclaration(std::span<const CodeToken> tokens,
                        const std::function<void(const CodeDeclaration &)> &visit)
{
    std::vector<bool> scopes; // whether it is of C
    std::size_t begin = 0;
    const auto isInC = [&scopes] { return std::find(scopes.begin(), scopes.end(), true) != scopes.end(); };
    for (std::size_t i = 0; i < tokens.size();) {
        const CodeToken &token = tokens[i];
        if (token.is("(") || token.is("[")) {
            i = pastClosingSign(tokens, i);
        } else if (token.is(";")) {
            visit({begin, i + 1, i + 1, false, isInC()});
            begin = ++i;
        } else if (token.is("}")) {
            if (!scopes.empty())
                scopes.pop_back();
            begin = ++i;
        } else if (token.is("{")) {
            const auto head = tokens.subspan(begin, i - begin);
            const bool isLinkage = head.size() == 2 && head[0].is("extern") && head[1].is("\"C\"");
            if (isLinkage || anyIs(head, "namespace")) {
                scopes.push_back(isLinkage);
                begin = ++i;
                continue;
            }
            const std::size_t past = pastClosingSign(tokens, i);
            const bool isFunction = anyIs(head, "(") && !anyIs(head, "=");
            if (!isFunction) { // a type or an initial value: up to its ';'
                i = past;
                continue;
            }
            visit({begin, i, past, true, isInC()});
            begin = i = past;
        } else {
            ++i;
        }
    }
}

bool hasWord(std::span<const CodeToken> tokens, std::string_view word, const CodeScan &scan)
{
    return std::any_of(tokens.begin(), tokens.end(), [&](const CodeToken &token) {
        if (token.is(word))
            return true;
        if (!token.isWord())
            return false;
        const auto macro = std::find_if(scan.macros.begin(), scan.macros.end(),
                                        [&](const CodeMacro &m) { return m.name == token.text; });
        return macro != scan.macros.end() && anyIs(macro->body, word);
    });
}

std::string textBetween(std::span<const CodeToken> tokens)
{
    std::string text;
    for (std::size_t i = 0; i < tokens.size(); ++i) {
        const char *const begin = tokens[i].text.data();
        if (i > 0 && begin != tokens[i - 1].text.data() + tokens[i - 1].text.size())
            text += ' ';
        text += tokens[i].text;
    }
    return text;
}

std::vector<std::span<const CodeToken>> splitAtCommas(std::span<const CodeToken> tokens)
{
    std::vector<std::span<const CodeToken>> parts;
    int depth = 0;
    std::size_t begin = 0;
    for (std::size_t i = 0; i <= tokens.size(); ++i) {
        if (i < tokens.size()) {
            depth += opens(tokens[i]) ? 1 : closes(tokens[i]) ? -1 : 0;
            if (depth > 0 || !tokens[i].is(","))
                continue;
        }
        parts.push_back(tokens.subspan(begin, i - begin));
        begin = i + 1;
    }
    if (parts.size() == 1 && parts[0].empty())
        parts.clear();
    return parts;
}

} // namespace klineage::kernel
