// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"

#include <string>
#include <string_view>
#include <vector>

namespace klineage::policy {

/// What an author says about one card and the code.
struct PlanEntry {
    enum class State { Missing, Present, Skip, Read };
    std::string card;
    State state = State::Missing;
    std::string reason;
};

/// The lines "name: missing | present | skip | read", each with a reason after a dash or not, in the order in which to apply; blank lines and
/// lines that begin with '#' are left out. Every name is one of known and comes once; cards that are not named are skipped. The error
/// is a sentence to send back.
[[nodiscard]] Result<std::vector<PlanEntry>> parsePlan(std::string_view text,
                                                       const std::vector<std::string> &known);

} // namespace klineage::policy
