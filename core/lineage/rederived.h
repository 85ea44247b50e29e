// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <string>
#include <vector>

/// What was derived forward again: when it counts as the stronger state's equal, how many transitions have it, and how it gets into a
/// lineage.
namespace klineage::lineage {

/// How much longer or less long than the stronger state it may take.
inline constexpr double rederivedWithin = 0.03;

enum class Match {
    Unsteady, ///< not timed, or its interval is too wide to tell a difference of `within`
    Slower,
    Equal, ///< takes between (1 - within) and (1 + within) times as long
    Faster,
};
/// A trial's candidate against its parent, by the value of their paired speedup.
[[nodiscard]] Match matchOf(const gate::Trial &trial, double within);

struct RederivedCount {
    std::size_t transitions = 0;
    std::size_t recorded = 0; ///< with a file that was derived again
    std::size_t faster = 0;   ///< of these: faster than the state by more than rederivedWithin
};
[[nodiscard]] RederivedCount countRederived(const Lineage &lineage);
/// "3 of 10 transitions were derived again, 1 of them to a faster kernel."
[[nodiscard]] std::string rederivedText(const RederivedCount &count);

/// Writes rederived/<to>.<ext>, all trials of it into trials.jsonl, and the transition's three fields (with `trial`, against `from`, and
/// `match`, against `to`, both among `all`) into lineage.toml (whose comments are lost). A kill leaves at worst the file and trials, which the next call completes.
[[nodiscard]] Status keepRederived(const std::filesystem::path &lineageDirectory, const std::string &to,
                                   const std::string &text, const gate::Trial &trial,
                                   const gate::Trial &match, const std::vector<gate::Trial> &all);

} // namespace klineage::lineage
