// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/rederive/rederivation.h"

#include <string>
#include <utility>
#include <vector>

namespace klineage::run {

struct Rederived {
    bool accepted = false;
    std::string reason; ///< why not, of the last try
    std::string text;
    gate::Trial trial;                                       ///< against the simpler kernel
    gate::Trial match;                                       ///< against the stronger one, in the same rounds
    std::vector<std::pair<gate::Trial, std::string>> trials; ///< all that were made, with their candidates
};

/// Asks in a conversation of its own. Writes one step a try.
[[nodiscard]] Result<Rederived> rederive(ActiveRun &run, const Rederivation &wanted);

} // namespace klineage::run
