// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/talk/prompt.h"

#include "core/base/identifier.h"
#include "core/base/suggest.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <vector>

namespace klineage::run {

namespace {

struct Template {
    std::string_view name;
    std::string_view text;
};

constexpr Template templates[] = {
#include "prompttemplates.inc"
};

Error problemOf(const std::string &where, const std::string &what)
{
    return {ErrorCode::InvalidInput, "The prompt '" + where + "' " + what, {}};
}

} // namespace

Result<std::string_view> promptTemplate(std::string_view name)
{
    const auto found = std::find_if(std::begin(templates), std::end(templates),
                                    [name](const Template &entry) { return entry.name == name; });
    if (found != std::end(templates))
        return found->text;
    std::vector<std::string> known;
    for (const Template &entry : templates)
        known.emplace_back(entry.name);
    return fail(ErrorCode::NotFound,
                "There is no prompt '" + std::string(name) + "'" + didYouMean(name, known) + '.');
}

Result<std::string> fillPrompt(std::string_view text, const std::string &where, const PromptValues &values)
{
    std::string filled;
    std::set<std::string> used;
    while (true) {
        const std::size_t open = text.find("{{");
        filled += text.substr(0, open);
        if (open == std::string_view::npos)
            break;
        const std::size_t close = text.find("}}", open);
        if (close == std::string_view::npos)
            return tl::unexpected(problemOf(where, "opens a placeholder with '{{' that it does not close."));
        const std::string name(text.substr(open + 2, close - open - 2));
        if (!isIdentifier(name))
            return tl::unexpected(problemOf(where, "has the placeholder '" + name.substr(0, 64)
                                                       + "', which is no identifier."));
        const auto value = values.find(name);
        if (value == values.end())
            return tl::unexpected(
                problemOf(where, "has the placeholder '" + name + "', for which there is no value."));
        used.insert(name);
        filled += value->second;
        text.remove_prefix(close + 2);
    }
    for (const auto &[name, value] : values) {
        if (used.count(name) == 0)
            return tl::unexpected(
                problemOf(where, "has no placeholder '" + name + "', for which there is a value."));
    }
    return filled;
}

Result<std::string> prompt(std::string_view name, const PromptValues &values)
{
    const Result<std::string_view> text = promptTemplate(name);
    if (!text)
        return tl::unexpected(text.error());
    return fillPrompt(*text, std::string(name), values);
}

std::string fenced(std::string_view text, std::string_view language)
{
    std::size_t longest = 2;
    std::size_t length = 0;
    for (const char c : text) {
        length = c == '`' ? length + 1 : 0;
        longest = std::max(longest, length);
    }
    const std::string fence(longest + 1, '`');
    std::string out = fence + std::string(language) + '\n' + std::string(text);
    if (!out.ends_with('\n'))
        out += '\n';
    return out + fence + '\n';
}

} // namespace klineage::run
