// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::lineage {

/// A step of the main line and what it gained.
struct LargeStep {
    std::string from;
    std::string to;         ///< the state that it leads to
    gate::Interval speedup; ///< paired against `from`, in the trial that stands for `to`
    std::string device;     ///< that trial's
};

/// A step among those of several lineages.
struct LineageStep {
    const Lineage *lineage = nullptr; ///< not owned
    LargeStep step;
};

/// The steps that were timed beside the state before them, most gain first; losses are among them, last.
[[nodiscard]] std::vector<LargeStep> largestSteps(const Lineage &lineage);

/// Those of all lineages, in the same order. The lineages must outlive them.
[[nodiscard]] std::vector<LineageStep> largestSteps(const std::vector<Lineage> &lineages);

/// The step to go to from a row: the largest, and from the n-th largest the next one; from the last one the largest again. nullptr: there
/// are no steps. Points into `steps`.
[[nodiscard]] const LargeStep *largestStepAfter(const std::vector<LargeStep> &steps, std::string_view row);

} // namespace klineage::lineage
