// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/experiment/results.h"

namespace klineage::run {

/// What the runs of a policy (or of an arm of one) came to, on one root or (root empty) on all. Runs that are not over are left out.
struct ArmResult {
    std::string policy;
    std::string root;
    int runs = 0;       ///< that are over
    int reached = 0;    ///< whose audit shows the goal's gain over the root: the value of the interval
    int firstRight = 0; ///< whose first candidate was correct
    double gain =
        1; ///< geometric mean of T_root / T_final, paired; a run without a better candidate counts as 1
    double questions = 0; ///< mean to the goal, of those that reached it
    double dollars = 0;   ///< the same
};

/// Two arms on the roots that both have: the root is the unit, its seeds are averaged.
struct Contrast {
    std::string policy; ///< the treatment
    std::string against;
    int roots = 0;
    double points =
        0; ///< mean over roots of the difference of the shares that reached the goal, in percentage points
    double pPoints = 1; ///< two-sided, of a permutation of signs over roots
    double ratio = 1;   ///< geometric mean over roots of gain / gain
    double low = 1;     ///< 95 %: of a bootstrap over roots
    double high = 1;
    double pRatio = 1; ///< two-sided, as above
};

/// Each policy on each root, then on all.
[[nodiscard]] std::vector<ArmResult> armResults(const Experiment &experiment,
                                                const ExperimentResults &results);
/// The last policy against each of the others, in their order. Empty without goals, or with one policy.
[[nodiscard]] std::vector<Contrast> contrasts(const Experiment &experiment, const ExperimentResults &results);

/// Two-sided p of a mean of differences under random signs: exact up to 16 differences, else of 65,536 draws. 1 for none.
[[nodiscard]] double signPermutation(const std::vector<double> &differences);
/// Mean with the 2.5th and 97.5th percentile of 10,000 means drawn with replacement (fixed seed).
struct MeanInterval {
    double mean = 0;
    double low = 0;
    double high = 0;
};
[[nodiscard]] MeanInterval bootstrapMean(const std::vector<double> &values);

} // namespace klineage::run
