// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <nlohmann/json_fwd.hpp>

namespace klineage::cli {

[[nodiscard]] nlohmann::json reviewJson(const skills::Review &review, bool reverted);
[[nodiscard]] nlohmann::json cardSummaryJson(const skills::CardRecord &record);
/// All fields, the carrier and the logs.
[[nodiscard]] nlohmann::json cardJson(const skills::CardRecord &record);

} // namespace klineage::cli
