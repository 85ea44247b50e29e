// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>

namespace klineage::policy {

/// A card for a prompt: all nine fields (intent, anchor, carrier, preconditions, effects, evidence, risks, scope, verification), needs,
/// parameters and the feature contracts, each claim with its evidence and figures, each risk with what it rests on; carrier and building
/// block verbatim, in fences that nothing in them closes.
[[nodiscard]] std::string cardText(const skills::CardRecord &record);

/// A card in a line of an index: name, life, intent, best measured effect, needs, what it comes after. At most some 200 bytes.
[[nodiscard]] std::string indexLine(const skills::CardRecord &record);

} // namespace klineage::policy
