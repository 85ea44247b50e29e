// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/explain/explain.h"

#include <nlohmann/json_fwd.hpp>

#include <string>

namespace klineage::gate {

/// "126", "61.9 %", "311.9 MB", "3.932 G": a metric's value with its unit.
[[nodiscard]] std::string metricText(double value, const std::string &unit);

/// "K08 is 1.131 times as fast as K07 (95 % interval 1.12 to 1.14, paired rounds): 221.3 µs, then 195.7 µs, 25.6 µs less."
[[nodiscard]] std::string stepText(const Explanation &explanation);
/// "The three largest causes are together about 93 % of the difference." When they are more than all of it: that they are, and what took it back.
[[nodiscard]] std::string togetherText(const Explanation &explanation);
/// "61.7 % of the time before, 56.8 % after: 25.4 µs less, about 99 % of the difference."
[[nodiscard]] std::string causeText(const Cause &cause);
/// "line 141 of K08, 9.3 µs more", "line 136 of K07, which is gone, 12 µs less"
[[nodiscard]] std::string lineText(const MovedLine &line, const Explanation &explanation);

/// For a terminal: the step, the causes, what they are together, cautions; or why nothing is ranked and what was kept.
[[nodiscard]] std::string explanationText(const Explanation &explanation);
/// {"before", "after", "paired", "speedup", "before_ns", "after_ns", "difference_ns", "source", "causes": [{"group", "title", "before",
/// "after", "before_ns", "after_ns", "share_of_difference", "reason", "metric", "kernel", "figures", "lines"}], "together", "against",
/// "nothing", "kept", "cautions", "figures"}; what is not known is null.
[[nodiscard]] nlohmann::json explanationJson(const Explanation &explanation);

} // namespace klineage::gate
