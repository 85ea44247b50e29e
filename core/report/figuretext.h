// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <string>

namespace klineage::report {

inline constexpr const char *nothing = "–"; ///< what was not measured

[[nodiscard]] std::string latencyText(const gate::Interval &ns);      ///< "209.4 µs ± 0.05 %"
[[nodiscard]] std::string speedupText(const gate::Interval &speedup); ///< "1.482× (1.480–1.484)"
[[nodiscard]] std::string factorText(double factor);                  ///< "1.482×", of no interval
[[nodiscard]] std::string dollarText(double dollars);                 ///< "$0.0123"
/// "correct"; "wrong: Element c[3, 17] differs."; "not gated" without a trial.
[[nodiscard]] std::string verdictText(const gate::Trial *trial);
/// Latency of a correct one, else the verdict's status; "not gated" without a trial.
[[nodiscard]] std::string outcomeText(const gate::Trial *trial);
/// The paired speedup against "parent" or a reference.
[[nodiscard]] std::string pairedText(const gate::Trial *trial, const std::string &against);

} // namespace klineage::report
