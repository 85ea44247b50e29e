// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/retrieval/query.h"

namespace klineage::skills::retrieval {

// What a card of format 2 needs, as symbols of the index: a kind and a word.
namespace needs {
inline constexpr auto capability = "capability:";
inline constexpr auto precondition = "when:";
inline constexpr auto trigger = "pays:";
inline constexpr auto family = "family:";
inline constexpr auto dtype = "dtype:";
inline constexpr auto language = "language:";
inline constexpr auto word = "word:";
inline constexpr auto part = "part:";
} // namespace needs

/// By need of the index. A condition that names what the target does not say is not known.
[[nodiscard]] std::vector<Holds> needsOf(const Index &index, const Target &target);
/// Nothing that the contract needs is known to be missing.
[[nodiscard]] bool keepsNeeds(const Index &index, const Likeness &likeness, const Contract &contract);
/// The sentences: "needs sm_90a, which sm80 lacks".
void addBrokenNeeds(std::vector<std::string> &rules, const Index &index, const Likeness &likeness,
                    const Target &target, const Contract &contract);

} // namespace klineage::skills::retrieval
