// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>

namespace klineage::policy {

/// A card for a prompt: all nine fields (intent, anchor, carrier, preconditions, effects, evidence, risks, scope, verification) and the
/// feature contracts, each claim with its evidence; the carrier verbatim, in a fence that nothing in it closes.
[[nodiscard]] std::string cardText(const skills::CardRecord &record);

} // namespace klineage::policy
