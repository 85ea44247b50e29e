// SPDX-License-Identifier: GPL-3.0-or-later
//
// How often the rule that stops and decides a comparison errs, on noise that was recorded: the rounds of a candidate and its copy in a
// library's trials. A trial is drawn anew from the blocks of a recorded one, and the rounds within them. Which of the two sides of
// a block is which is a coin's, because placement is drawn for each block: so there is no difference, whatever one block shows.
#pragma once

#include "core/base/result.h"
#include "core/trial/verdict.h"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace klineage::gate {

/// Rounds of a block; those of a trial that had fewer are taken as if they came in such blocks.
inline constexpr std::size_t resampledRounds = 5;

/// Ratios of a recorded candidate to its copy, by block; at least six blocks.
using Noise = std::vector<std::vector<double>>;

/// Of all lineages of a platform below workloads/. Fails when a file cannot be read; trials without a copy are left out.
[[nodiscard]] Result<std::vector<Noise>> recordedNoise(const std::filesystem::path &workloads,
                                                       const std::string &platform);

/// noiseFloor() of all its rounds.
[[nodiscard]] double floorOf(const Noise &noise);

struct ResampleOptions {
    int trials = 10'000;
    bool quick = true; ///< until it is decided; else to the half-width
    double targetHalfWidth = 0.002;
    double slower = 0; ///< how much longer the candidate takes than its parent
    std::size_t mostBlocks = 60;
    std::uint64_t seed = 1;
};

struct ResampleCounts {
    int gains = 0;
    int losses = 0;
    int undecided = 0;
    std::size_t blocksP50 = 0;
    std::size_t blocksP95 = 0;
};

/// So many trials, from each of the recorded ones in turn. noises: not empty. The same options give the same counts.
[[nodiscard]] ResampleCounts resample(const std::vector<Noise> &noises, const ResampleOptions &options);

} // namespace klineage::gate
