// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace klineage::policy {

using OptionTexts = std::map<std::string, std::string>;

/// Reads a whole number; one that is not there leaves value as it is. InvalidInput names the option, its text and the range.
[[nodiscard]] Status readCount(const OptionTexts &options, const char *key, std::int64_t low,
                               std::int64_t high, std::int64_t &value);

/// A number that a search policy is set with.
struct SearchOption {
    const char *name;
    double absent; ///< its value when nothing is said
    double least;
    double most;
    bool isWhole;
    const char *source; ///< "paper", "code", "OpenEvolve" or "workbench default"
    const char *what;   ///< for the documentation
};
using SearchOptions = std::vector<SearchOption>;

/// Those that every search policy has, then its own.
[[nodiscard]] SearchOptions withShared(const SearchOptions &own);

/// The numbers of one search, all of them within their ranges.
class SearchSettings
{
public:
    [[nodiscard]] static Result<SearchSettings> read(const SearchOptions &known, const OptionTexts &options);

    /// The name has to be among the known ones.
    [[nodiscard]] double number(const char *name) const { return m_values.at(name); }
    [[nodiscard]] int count(const char *name) const { return static_cast<int>(m_values.at(name)); }

private:
    std::map<std::string, double> m_values;
};

} // namespace klineage::policy
