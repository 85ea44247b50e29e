// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/run/subject.h"
#include "core/skills/card.h"
#include "core/workspace/workspace.h"

#include <string>
#include <vector>

namespace klineage::run {

/// Whether a target had no part in a card, and why not in one sentence.
struct HeldOut {
    bool value = false;
    std::string reason;
};

/// A target is held out when its lineage is none of those that the card cites, no lineage of the same workload on the same platform is
/// (two walks from one kernel share states), and its text is none of theirs.
[[nodiscard]] HeldOut isHeldOut(const Workspace &workspace, const skills::Card &card, const Subject &target,
                                const std::string &workload, const std::string &platform);

/// Everything that the card cites, each once: its own evidence, then that of its claims.
[[nodiscard]] std::vector<skills::Citation> citationsOf(const skills::Card &card);

} // namespace klineage::run
