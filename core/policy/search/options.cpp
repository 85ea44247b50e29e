// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/policy/search/options.h"

#include "core/base/numbertext.h"

#include <charconv>
#include <cmath>

namespace klineage::policy {

namespace {

tl::unexpected<Error> refused(const char *key, const std::string &text, const std::string &kind,
                              const std::string &low, const std::string &high)
{
    return fail(ErrorCode::InvalidInput, "The option '" + std::string(key) + "' is '" + text + "'; a " + kind
                                             + " from " + low + " to " + high + " was expected.");
}

template <typename Number>
bool parse(const std::string &text, Number &value)
{
    const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
    return problem == std::errc() && end == text.data() + text.size();
}

} // namespace

Status readCount(const OptionTexts &options, const char *key, std::int64_t low, std::int64_t high,
                 std::int64_t &value)
{
    const auto it = options.find(key);
    if (it == options.end())
        return {};
    if (!parse(it->second, value) || value < low || value > high)
        return refused(key, it->second, "whole number", std::to_string(low), std::to_string(high));
    return {};
}

SearchOptions withShared(const SearchOptions &own)
{
    SearchOptions all{
        {"shown_bytes", 100'000, 1000, 2'000'000, true, "workbench default",
         "bytes of other programs in one question; those beyond are named with their figures alone"},
        {"prompt_bytes", 0, 1000, 2'000'000, true, "workbench default",
         "bytes of a question in all, with an index of the cards in its prefix and the texts of those that come next; 0: all of their texts "
         "in the prefix, as in runs of earlier versions"},
        {"done_limit", 3, 1, 1000, true, "workbench default",
         "answers in a row that say DONE, then the search is over"},
    };
    all.insert(all.end(), own.begin(), own.end());
    return all;
}

Result<SearchSettings> SearchSettings::read(const SearchOptions &known, const OptionTexts &options)
{
    SearchSettings settings;
    for (const SearchOption &option : known) {
        double value = option.absent;
        const auto it = options.find(option.name);
        if (it != options.end()) {
            const bool isNumber = parse(it->second, value) && std::isfinite(value);
            const bool fits = isNumber && (!option.isWhole || value == std::floor(value));
            if (!fits || value < option.least || value > option.most)
                return refused(option.name, it->second, option.isWhole ? "whole number" : "number",
                               shortestText(option.least), shortestText(option.most));
        }
        settings.m_values[option.name] = value;
    }
    return settings;
}

} // namespace klineage::policy
