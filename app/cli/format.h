// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/lineage/lineage.h"

#include <nlohmann/json_fwd.hpp>

#include <optional>
#include <string>

namespace klineage::cli {

[[nodiscard]] std::string formatNs(double ns); ///< "209.4 µs": four digits and a unit that fits
[[nodiscard]] std::string formatLatency(const gate::Interval &ns);        ///< "209.4 µs ±0.05 %"
[[nodiscard]] std::string formatSpeedup(const gate::Interval &speedup);   ///< "1.482× [1.480, 1.484]"
[[nodiscard]] std::string formatRate(double perSecond, const char *unit); ///< "126.4 GFLOP/s"

/// "–" for what was not measured.
[[nodiscard]] std::string formatLatency(const std::optional<gate::Interval> &ns);
[[nodiscard]] std::string formatSpeedup(const std::optional<gate::Interval> &speedup);

[[nodiscard]] nlohmann::json jsonOf(const gate::Interval &interval);
[[nodiscard]] nlohmann::json jsonOf(const std::optional<gate::Interval> &interval); ///< null when empty
[[nodiscard]] nlohmann::json rederivedJson(const lineage::Lineage &lineage);   ///< how many transitions were
[[nodiscard]] nlohmann::json transitionsJson(const lineage::Lineage &lineage); ///< a list, without evidence

} // namespace klineage::cli
