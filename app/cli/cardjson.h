// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/applications.h"
#include "core/skills/card.h"

#include <nlohmann/json_fwd.hpp>

namespace klineage::cli {

[[nodiscard]] nlohmann::json reviewJson(const skills::Review &review, bool reverted);
[[nodiscard]] nlohmann::json cardSummaryJson(const skills::CardRecord &record);
/// All fields, the carrier and the logs.
[[nodiscard]] nlohmann::json cardJson(const skills::CardRecord &record);

/// {"shown", "applied", "runs", "platforms": [{"platform", "shown", "applied", "together", "gained", "no_gain", "lost", "undecided", "wrong",
/// "median_factor": {"count", "value", "low", "high", "interval"}}], "candidates": [{"run", "workload", "platform", "trial", "action", "cards",
/// "outcome", "status", "factor"}]}
[[nodiscard]] nlohmann::json applicationsJson(const run::ApplicationRecord &record, const std::string &card);

} // namespace klineage::cli
