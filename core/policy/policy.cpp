// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/policy.h"

#include "core/base/suggest.h"
#include "core/policy/accelopt/accelopt.h"
#include "core/policy/adaexplore/adaexplore.h"
#include "core/policy/greedy.h"
#include "core/policy/kernelpro/kernelpro.h"
#include "core/policy/kernelsmith/kernelsmith.h"
#include "core/policy/lineagepolicy.h"

#include <algorithm>
#include <iterator>

namespace klineage::policy {

namespace {

constexpr const char *lineageName = "klineage";
constexpr const char *generatedName = "generated-only";
constexpr const char *greedyName = "greedy";

template <typename Search>
Result<std::unique_ptr<Policy>> makeSearch(Problem problem, const SearchOptions &known)
{
    Result<SearchSettings> settings = SearchSettings::read(known, problem.options);
    if (!settings)
        return tl::unexpected(settings.error());
    return std::make_unique<Search>(std::move(problem), std::move(*settings));
}

/// The searches of other systems: a new one is a row.
struct SearchEntry {
    const char *name;
    const SearchOptions &(*options)();
    Result<std::unique_ptr<Policy>> (*make)(Problem problem, const SearchOptions &known);
};
constexpr SearchEntry searches[] = {
    {"kernel-smith", kernelSmithOptions, makeSearch<KernelSmith>},
    {"kernelpro", kernelProOptions, makeSearch<KernelPro>},
    {"adaexplore", adaExploreOptions, makeSearch<AdaExplore>},
    {"accelopt", accelOptOptions, makeSearch<AccelOpt>},
};

const SearchEntry *findSearch(std::string_view name)
{
    const auto found = std::find_if(std::begin(searches), std::end(searches),
                                    [name](const SearchEntry &entry) { return entry.name == name; });
    return found == std::end(searches) ? nullptr : found;
}

} // namespace

Result<Limits> readLimits(const std::map<std::string, std::string> &options)
{
    Limits limits;
    std::int64_t patience = limits.patience;
    std::int64_t repairs = limits.repairs;
    std::int64_t chatBytes = static_cast<std::int64_t>(limits.chatBytes);
    std::int64_t promptBytes = 0;
    for (const Status &read :
         {readCount(options, "patience", 1, 1000, patience), readCount(options, "repairs", 0, 100, repairs),
          readCount(options, "chat_bytes", 1000, 2'000'000, chatBytes),
          readCount(options, "prompt_bytes", 1000, 2'000'000, promptBytes)}) {
        if (!read)
            return tl::unexpected(read.error());
    }
    limits.patience = static_cast<int>(patience);
    limits.repairs = static_cast<int>(repairs);
    limits.chatBytes = static_cast<std::size_t>(chatBytes);
    limits.promptBytes = static_cast<std::size_t>(promptBytes);
    return limits;
}

std::vector<std::string> policyNames()
{
    std::vector<std::string> names{lineageName, generatedName, greedyName};
    for (const SearchEntry &entry : searches)
        names.emplace_back(entry.name);
    return names;
}

std::vector<std::string> policyOptions(std::string_view policy)
{
    if (policy == greedyName)
        return {"patience", "repairs", "chat_bytes", "prompt_bytes"};
    if (policy == lineageName || policy == generatedName)
        return {"patience", "repairs", "chat_bytes"};
    std::vector<std::string> names;
    if (const SearchEntry *entry = findSearch(policy)) {
        for (const SearchOption &option : entry->options())
            names.emplace_back(option.name);
    }
    return names;
}

bool usesCards(std::string_view policy, const std::map<std::string, std::string> &options)
{
    const auto cards = options.find("cards");
    const auto arm = options.find("arm");
    if (arm != options.end() && arm->second == "none")
        return false;
    return policy == lineageName
           || ((policy == greedyName || findSearch(policy)) && cards != options.end()
               && cards->second == "yes");
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

Moves movesOf(const std::map<std::string, std::string> &options)
{
    const auto moves = options.find("moves");
    if (moves == options.end())
        return Moves::Single;
    return moves->second == "own-first" ? Moves::OwnFirst
           : moves->second == "bundles" ? Moves::Bundles
                                        : Moves::Single;
}

std::string presentText(const Problem &problem)
{
    if (problem.cards.empty() || problem.present.empty())
        return {};
    std::string text = "Already there in the root, by the look of its code, and left out of these:";
    for (const std::string &name : problem.present)
        text += (&name == &problem.present.front() ? " " : ", ") + name;
    return text + ".\n";
}

int mostChangedLines(const std::map<std::string, std::string> &options)
{
    std::int64_t lines = 0;
    return readCount(options, "most_changed_lines", 1, 100'000, lines) ? static_cast<int>(lines) : 0;
}

Result<std::unique_ptr<Policy>> makePolicy(const std::string &name, Problem problem)
{
    if (!usesCards(name, problem.options))
        problem.cards.clear();
    if (const SearchEntry *entry = findSearch(name))
        return entry->make(std::move(problem), entry->options());
    const Result<Limits> limits = readLimits(problem.options);
    if (!limits)
        return tl::unexpected(limits.error());
    if (name == lineageName || name == generatedName)
        return std::make_unique<LineagePolicy>(std::move(problem), *limits);
    if (name == greedyName)
        return std::make_unique<Greedy>(std::move(problem), *limits);
    const std::vector<std::string> known = policyNames();
    return fail(ErrorCode::InvalidInput, "There is no policy '" + name + "'; expected " + quotedList(known)
                                             + didYouMean(name, known) + '.');
}

} // namespace klineage::policy
