// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/results.h"

#include <span>

/// What papers sum up the results of many problems with. Pure functions of outcomes, so that figures here mean what theirs mean.
namespace klineage::run {

/// What an author made of one problem.
struct Instance {
    bool correct = false;
    double speedup = 0; ///< T_ref / T_gen; counts only where it is correct
};

/// Definition and source of a measure, for people: whole sentences.
struct MeasureNote {
    const char *name; ///< "fast_1"
    const char *definition;
    const char *source;
};
inline constexpr MeasureNote correctNote{
    "correct",
    "Share of all instances whose final candidate is correct and the author's own: the fast_0 of KernelBench.",
    "Ouyang et al.: KernelBench: Can LLMs write efficient GPU kernels? arXiv:2502.10517."};
inline constexpr MeasureNote fastNote{
    "fast_p",
    "Share of all instances that are correct and more than p times as fast as the reference. What failed counts in the whole.",
    "Ouyang et al.: KernelBench: Can LLMs write efficient GPU kernels? arXiv:2502.10517."};
inline constexpr MeasureNote amsrNote{
    "AMSR",
    "Arithmetic mean of the speedups over the reference over all instances; one that failed, or is slower than the reference, counts as 0.",
    "Kernel-Smith: A unified recipe for evolutionary kernel optimization, arXiv:2603.28342, \"avg amsr\"."};
inline constexpr MeasureNote geometricMeanNote{
    "geometric mean",
    "Geometric mean of the speedups over the reference of the correct instances alone: what failed is not in it, so read it beside the "
    "share of correct ones.",
    "As the success-only geometric mean of the KLineage paper, in which every correct kernel is a success."};

/// Each 0 for no instances.
[[nodiscard]] double shareCorrect(std::span<const Instance> instances);
[[nodiscard]] double fastShare(std::span<const Instance> instances, double p); ///< fast_p
[[nodiscard]] double meanSpeedupRatio(std::span<const Instance> instances);    ///< AMSR
/// 0: none is correct.
[[nodiscard]] double geometricMeanSpeedup(std::span<const Instance> instances);

/// A run that is over: correct where its final candidate is correct and not the root, with its speedup over the run's reference.
[[nodiscard]] Instance instanceOf(const CellResult &cell);

/// The measures of a policy on one root or (root empty) on all. Each run that is over is an instance; others are left out.
struct Measures {
    std::string policy;
    std::string root;
    int instances = 0;
    double correct = 0;
    double fast1 = 0;
    double fast2 = 0;
    double amsr = 0;
    double geometricMean = 0;
};
/// As ExperimentResults::policies: each policy on each root, then on all.
[[nodiscard]] std::vector<Measures> measuresOf(const Experiment &experiment,
                                               const ExperimentResults &results);

} // namespace klineage::run
