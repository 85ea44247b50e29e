// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/verdict.h"

#include <cstdint>
#include <optional>
#include <span>

namespace klineage::gate {

/// Median of the values (mean of the middle two when there is an even number); 0 for none. Pure.
[[nodiscard]] double median(std::span<const double> values);

/// Median with a percentile bootstrap interval of 95 % (Efron 1979). The resampling is seeded by `seed` alone, so that the same
/// samples always give the same interval. Below five samples the interval is the whole range.
[[nodiscard]] Interval bootstrapMedian(std::span<const double> values, std::uint64_t seed = 1,
                                       int resamples = 1000);

/// The same for rounds that come in blocks, between which something that shifts all rounds of a block was drawn anew (placement).
/// blockEnds: count of values at the end of each block, increasing. Blocks are resampled, then the rounds within them, and the interval
/// is widened about the median by what Student's t asks of so few blocks: t(0.975, B − 1)/1.96 · √(B/(B − 1)). One block: the whole range.
/// Of values that are not negative it is not either.
[[nodiscard]] Interval blockedMedian(std::span<const double> values, std::span<const std::size_t> blockEnds,
                                     std::uint64_t seed = 1, int resamples = 1000);

[[nodiscard]] inline double halfWidth(const Interval &interval)
{
    return 0.5 * (interval.high - interval.low);
}

/// How far two copies of one candidate seemed apart: the larger of |median − 1| and the half-width of their paired ratios.
[[nodiscard]] double noiseFloor(const Interval &ratioOfCopies);

/// The least gain or loss that counts: max(0.3 %, twice the spread of two copies of one candidate).
[[nodiscard]] double significantChange(std::optional<double> copySpread);

/// Judges speedup = T_other / T_candidate against t = significantChange():
///   gain       low > 1 + t
///   loss       high < 1 − t
///   no_gain    high ≤ 1.003: a gain that would count is ruled out, a loss is not shown
///   undecided  otherwise (too wide, or too noisy a session), or fewer than five rounds
/// The interval should come from blockedMedian(): one over rounds alone does not see what placement does.
[[nodiscard]] Change decide(const Interval &speedup, std::size_t rounds, std::optional<double> copySpread);

/// Which samples take far longer than others, and how many more of them say something.
struct FarSamples {
    double beyond = 1;     ///< of a side's median
    double deviations = 0; ///< of their number, by which a candidate's are to be more than the other's
};
/// A processor's samples wander; a device's do not.
inline constexpr FarSamples farOnHost{1.5, 3.0};
inline constexpr FarSamples farOnDevice{1.1, 1.7};

/// Some of the candidate's samples take so much longer that its mean is not certainly less than the other's (by two standard errors, from ten stretches
/// of time), and there are more of those than the other has: the median alone does not say what it costs.
[[nodiscard]] bool losesOnAverage(std::span<const double> other, std::span<const double> candidate,
                                  const FarSamples &far);

/// The look-th look (1, 2, …) at a comparison that is still growing may err at this level, so that all looks together err in 5 %:
/// 0.05 · 6/(π² look²).
[[nodiscard]] double lookLevel(std::size_t look);

/// A 95 % interval of blockedMedian() over `blocks` blocks, widened about its value to the level of a look by Student's t.
[[nodiscard]] Interval widenedTo(const Interval &interval, std::size_t blocks, double level);

/// Whether an interval leaves open what the answer is: undecided, or no gain though a loss of 0.3 % is not ruled out either. That it is below
/// the noise so far is no answer, because what is known of the noise is as rough.
[[nodiscard]] bool isOpen(const Interval &speedup, std::optional<double> copySpread);

/// Which look (1, 2, …) comes after so many blocks: the first after the fewest, then after each block, and later after a fifth more of them;
/// each look has its price. Nothing: none.
[[nodiscard]] std::optional<std::size_t> lookAfter(std::size_t blocks, std::size_t fewest);

/// Whether timing may stop: a gain, or a loss, or that it is neither is certain at the level of the look, and the speedup is known within
/// 1 % or three hundredths of its change.
[[nodiscard]] bool settled(const Interval &speedup, std::size_t blocks, std::size_t look,
                           std::optional<double> copySpread);

/// other[i] / candidate[i]; both have the same length and positive values.
[[nodiscard]] std::vector<double> pairedRatios(std::span<const double> other,
                                               std::span<const double> candidate);

} // namespace klineage::gate
