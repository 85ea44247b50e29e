// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy.h"

#include "core/base/suggest.h"
#include "core/policy/greedy.h"
#include "core/policy/lineagepolicy.h"

#include <algorithm>
#include <charconv>

namespace klineage::policy {

namespace {

constexpr const char *lineageName = "klineage";
constexpr const char *generatedName = "generated-only";
constexpr const char *greedyName = "greedy";

Status readCount(const std::map<std::string, std::string> &options, const char *key, std::int64_t low,
                 std::int64_t high, std::int64_t &value)
{
    const auto it = options.find(key);
    if (it == options.end())
        return {};
    const std::string &text = it->second;
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (problem != std::errc() || end != text.data() + text.size() || value < low || value > high)
        return fail(ErrorCode::InvalidInput, "The option '" + std::string(key) + "' is '" + text
                                                 + "'; a whole number from " + std::to_string(low) + " to "
                                                 + std::to_string(high) + " was expected.");
    return {};
}

} // namespace

Result<Limits> readLimits(const std::map<std::string, std::string> &options)
{
    Limits limits;
    std::int64_t patience = limits.patience;
    std::int64_t repairs = limits.repairs;
    std::int64_t chatBytes = static_cast<std::int64_t>(limits.chatBytes);
    for (const Status &read :
         {readCount(options, "patience", 1, 1000, patience), readCount(options, "repairs", 0, 100, repairs),
          readCount(options, "chat_bytes", 1000, 2'000'000, chatBytes)}) {
        if (!read)
            return tl::unexpected(read.error());
    }
    limits.patience = static_cast<int>(patience);
    limits.repairs = static_cast<int>(repairs);
    limits.chatBytes = static_cast<std::size_t>(chatBytes);
    return limits;
}

std::vector<std::string> policyNames()
{
    return {lineageName, generatedName, greedyName};
}

bool usesCards(std::string_view policy, const std::map<std::string, std::string> &options)
{
    const auto cards = options.find("cards");
    return policy == lineageName
           || (policy == greedyName && cards != options.end() && cards->second == "yes");
}

bool showsIndex(const std::map<std::string, std::string> &options)
{
    const auto text = options.find("card_text");
    return text != options.end() && text->second == "index";
}

bool followsPairs(const std::map<std::string, std::string> &options)
{
    const auto best = options.find("best");
    return best != options.end() && best->second == "paired";
}

Result<std::unique_ptr<Policy>> makePolicy(const std::string &name, Problem problem)
{
    const Result<Limits> limits = readLimits(problem.options);
    if (!limits)
        return tl::unexpected(limits.error());
    if (!usesCards(name, problem.options))
        problem.cards.clear();
    if (name == lineageName || name == generatedName)
        return std::make_unique<LineagePolicy>(std::move(problem), *limits);
    if (name == greedyName)
        return std::make_unique<Greedy>(std::move(problem), *limits);
    const std::vector<std::string> known = policyNames();
    return fail(ErrorCode::InvalidInput, "There is no policy '" + name + "'; expected " + quotedList(known)
                                             + didYouMean(name, known) + '.');
}

} // namespace klineage::policy
