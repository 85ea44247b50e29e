// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace klineage::skills {

/// Lower case (ASCII), one space between words, none around: how loci, features and categories are compared.
[[nodiscard]] std::string normalized(std::string_view text);

/// "opencl" for "pocl" and "opencl-…", "cuda" for "sm90"; empty for others.
[[nodiscard]] std::string_view languageOfPlatform(std::string_view platform);

/// 1 for the same platform; within NVIDIA's compute capabilities 0.8 for the same major number ("sm86", "sm89") and
/// 1 / (1 + generations apart) otherwise ("sm90", "sm100": 0.5). 0 across vendors and kinds: what was measured on one says nothing
/// of the other.
[[nodiscard]] double platformSimilarity(std::string_view a, std::string_view b);

/// How well a state fits another that a card was verified in, by the actions behind both: shared, missing (the card's state had
/// them, the code has not) and extra ones. Missing ones weigh four times as much as extra ones, because what was verified may rest on
/// them. The naive kernel that every state began with counts as one shared action.
[[nodiscard]] double priorSimilarity(std::size_t shared, std::size_t missing, std::size_t extra);

/// Of workloads that share some of all their tags: Jaccard, below 1 even when all are shared, since they are different workloads.
[[nodiscard]] double tagSimilarity(std::size_t shared, std::size_t all);

} // namespace klineage::skills
