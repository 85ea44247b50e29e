// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"

#include <string>

namespace klineage::policy {

/// A card for a prompt: all nine fields (intent, anchor, carrier, preconditions, effects, evidence, risks, scope, verification), needs,
/// parameters and the feature contracts, each claim with its evidence and figures, each risk with what it rests on; carrier and building
/// block verbatim, in fences that nothing in them closes.
[[nodiscard]] std::string cardText(const skills::CardRecord &record);

/// What applying it takes, without evidence, figures and scope: for a prompt that shows a whole lineage's cards.
[[nodiscard]] std::string briefCardText(const skills::CardRecord &record);

/// A card in a line of an index: name, a star when it is admitted, the best factor that was measured against a parent, the features that
/// not every GPU has, the beginning of its intent.
/// Some 85 bytes; the text before an index says so (indexLegend).
[[nodiscard]] std::string indexLine(const skills::CardRecord &record);
/// What the lines of an index mean, in a sentence.
inline constexpr const char *indexLegend =
    "A star: admitted on held-out kernels. The number: the best factor measured against the state before it. Then what not every "
    "device has, and the beginning of the intent.\n";

} // namespace klineage::policy
