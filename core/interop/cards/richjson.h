// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <nlohmann/json_fwd.hpp>

#include <functional>

namespace klineage::interop {

/// What the workspace knows of a transition that a card cites.
struct CitedTransition {
    std::string category;
    std::string locus;
    std::string before; ///< sha-256 of the two states
    std::string after;
    std::string validation; ///< the status of its trial
};
using FindTransition = std::function<std::optional<CitedTransition>(const skills::Citation &)>;

/// KLineage's rich JSON of a card. Each piece of evidence also says what it is here ("citation"), and the card what it came from.
[[nodiscard]] nlohmann::ordered_json richJson(const skills::CardRecord &record, const FindTransition &find);

} // namespace klineage::interop
