// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/lift/group.h"

#include <string>
#include <vector>

namespace klineage::run {

/// A metric that changed by more than a tenth; kernels added up.
struct MetricChange {
    std::string name;
    double before = 0;
    double after = 0;
};
/// The largest change first.
[[nodiscard]] std::vector<MetricChange> metricChanges(const gate::Trial &before, const gate::Trial &after);

/// What the trial measured, also as changes against the trial before it, which may be nullptr.
[[nodiscard]] Figures figuresOf(const gate::Trial &trial, const gate::Trial *before);

} // namespace klineage::run
