// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/skills/card.h"
#include "core/workspace/workspace.h"

#include <vector>

namespace klineage {

/// Whether what a card cites is there: transitions and attempts in the workspace's lineages, trials in their trials.jsonl.
[[nodiscard]] bool citationExists(const Workspace &workspace, const skills::Citation &citation);

/// A finding (Error) for every well-formed citation of the card that names nothing in the workspace, or rests on a trial that admits
/// nothing (Trial::admits()); it complements lintCard(). Of an
/// imported card they are warnings.
[[nodiscard]] std::vector<skills::LintFinding> lintCitations(const Workspace &workspace,
                                                             const skills::Card &card);

} // namespace klineage
