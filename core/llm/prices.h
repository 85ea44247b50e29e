// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/llm/message.h"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace klineage::llm {

/// Dollars per million tokens.
struct Price {
    std::string model; ///< exact name, or a beginning that ends with "*"
    double input = 0;
    double cacheRead = 0;
    double cacheWrite = 0;
    double output = 0;

    /// What all tokens of a request cost whose input is longer than a limit, where a server asks more (or less) for those.
    struct LongPrompt {
        std::int64_t aboveTokens = 0;
        double input = 0;
        double cacheRead = 0;
        double cacheWrite = 0;
        double output = 0;
        friend bool operator==(const LongPrompt &, const LongPrompt &) = default;
    };
    std::optional<LongPrompt> longPrompt = {};
    friend bool operator==(const Price &, const Price &) = default;
};

/// resources/prices.toml: a date, where the figures come from, and [[model]] entries.
struct PriceTable {
    std::string date;   ///< "2026-11-21"
    std::string source; ///< in words
    std::vector<Price> prices;
    std::string file; ///< where it was read from; not a part of the text

    /// The exact name, then the longest beginning; nullptr: unknown, so that the caller must ask for one.
    [[nodiscard]] const Price *find(std::string_view model) const;
};

[[nodiscard]] Result<PriceTable> parsePrices(std::string_view text, const std::string &fileName);
[[nodiscard]] std::string writePrices(const PriceTable &table);

/// The table that applies: prices.toml in the workspace, else klineage/prices.toml in the user's configuration folder
/// ($XDG_CONFIG_HOME or ~/.config), else resources/prices.toml as it was when the program was built. workspace may be empty.
[[nodiscard]] Result<PriceTable> loadPrices(const std::filesystem::path &workspace);
/// Where a person's own table belongs: the file in the configuration folder; empty when there is no such folder.
[[nodiscard]] std::filesystem::path ownPriceFile();
/// For a model without a price: what is missing and the lines to add to which file.
[[nodiscard]] Error unknownPrice(const PriceTable &table, std::string_view model);

[[nodiscard]] double dollars(const Price &price, const Usage &usage);
/// The most tokens that a request's input can be: one a byte (no tokenizer makes more), and what servers put around messages.
[[nodiscard]] std::int64_t mostInputTokens(const Request &request);
/// The most that a request can cost: mostInputTokens, written to the cache or not, whichever is dearer, and all of maxOutputTokens.
[[nodiscard]] double mostDollars(const Price &price, const Request &request);
/// What it will probably cost: a token every 3.5 bytes of input, the given output.
[[nodiscard]] double likelyDollars(const Price &price, const Request &request, std::int64_t outputTokens);

} // namespace klineage::llm
