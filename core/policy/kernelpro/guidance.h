// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <string>

namespace klineage::policy {

/// KernelPro's semantic feedback, from the metrics that a trial recorded. Stage one: the class of the roofline (analytic intensity against
/// the ridge, and counters; the analytic side where they differ). Stage two: the findings of those micro-profiling tools that
/// look at such a kernel and whose triggers fire. What was not measured is named. Empty for a trial that was not timed.
[[nodiscard]] std::string guidanceText(const gate::Trial &trial);

} // namespace klineage::policy
