// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/plan.h"

#include "core/base/suggest.h"

#include <algorithm>
#include <optional>

namespace klineage::policy {

namespace {

constexpr std::size_t longestQuote = 80;

std::string_view trimmed(std::string_view text, std::string_view blanks = " \t\r\n")
{
    const std::size_t begin = text.find_first_not_of(blanks);
    if (begin == std::string_view::npos)
        return {};
    return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::optional<PlanEntry::State> stateOf(std::string_view word)
{
    if (word == "missing")
        return PlanEntry::State::Missing;
    if (word == "present")
        return PlanEntry::State::Present;
    if (word == "skip")
        return PlanEntry::State::Skip;
    if (word == "read")
        return PlanEntry::State::Read;
    return std::nullopt;
}

tl::unexpected<Error> refused(int line, const std::string &what)
{
    return fail(ErrorCode::InvalidInput, "Line " + std::to_string(line) + " of the plan " + what);
}

} // namespace

Result<std::vector<PlanEntry>> parsePlan(std::string_view text, const std::vector<std::string> &known)
{
    std::vector<PlanEntry> plan;
    int number = 0;
    while (!text.empty()) {
        const std::size_t end = text.find('\n');
        const std::string_view line = trimmed(text.substr(0, end));
        text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
        ++number;
        if (line.empty() || line[0] == '#')
            continue;
        const std::size_t colon = line.find(':');
        if (colon == std::string_view::npos)
            return refused(number,
                           "has no colon; 'card: missing', 'card: present' or 'card: skip' was expected.");
        const std::string name(trimmed(line.substr(0, colon)).substr(0, longestQuote));
        if (std::find(known.begin(), known.end(), name) == known.end())
            return refused(number, "names '" + name + "', which is no card that was given"
                                       + didYouMean(name, known) + '.');
        const std::string_view rest = trimmed(line.substr(colon + 1));
        const std::size_t wordEnd = std::min(rest.find_first_of(" \t,;.-("), rest.size());
        const auto state = stateOf(rest.substr(0, wordEnd));
        if (!state)
            return refused(number, "says neither missing, present nor skip of '" + name + "'.");
        if (std::any_of(plan.begin(), plan.end(), [&](const PlanEntry &e) { return e.card == name; }))
            return refused(number, "names '" + name + "' again.");
        plan.push_back(
            {name, *state, std::string(trimmed(rest.substr(wordEnd), " \t-,;.()").substr(0, 300))});
    }
    if (plan.empty())
        return fail(ErrorCode::InvalidInput, "The plan is empty; a line for each card was expected.");
    return plan;
}

} // namespace klineage::policy
