// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/policy/policy.h"

namespace klineage::tests {

/// What a policy came to in many simulated worlds (simulatedworld.h: no model, no device).
struct StudyRow {
    std::string policy;
    int runs = 0;
    double nearOptimum = 0; ///< share of the runs whose best comes within 5 % of the planted optimum
    double medianGain = 0;  ///< true speedup over the root of a run's best
    double medianShare = 0; ///< of the optimum's speedup
    double medianToNinety =
        0; ///< questions until 90 % of the optimum's speedup; of the runs that never came so far one more than they had
    double reachedNinety = 0; ///< share of the runs that came so far
};

/// Every policy in the same worlds, with its own defaults, but that only the number of questions ends it. World and run have the seed 1, 2, ….
[[nodiscard]] std::vector<StudyRow> studyPolicies(const std::vector<std::string> &policies, int worlds,
                                                  int questions);
/// A Markdown table.
[[nodiscard]] std::string studyTable(const std::vector<StudyRow> &rows);

} // namespace klineage::tests
