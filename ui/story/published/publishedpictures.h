// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workspace/workspace.h"
#include "ui/plots/runtrace.h"
#include "ui/story/picture/picture.h"
#include "ui/story/published/paper.h"

namespace klineage::ui {

// What the paper shows, from what is recorded here; its own numbers stand beside ours where it has printed them, as outlines that are called
// published, with their platform. Pure.

/// Speedup over the vendor's routine by workload and platform (Figure 3): K* of each lineage that was timed beside one, paired; × where
/// K* failed. First the operators that the paper has too, beside its numbers.
[[nodiscard]] Picture speedupBars(const Workspace &workspace, const Paper &paper);

/// A run step by step (Figure 6): ● valid, ◇ audited, × wrapper, △ failed, and the running best without wrappers. For an operator of the
/// paper's Figure 6 what it prints of that as lines.
[[nodiscard]] Picture runSteps(const RunEntry &run, const Paper &paper);

/// Adds the paper's factors of its case study (Table 8, the labelled drops of Figure 5) beside a trace.
void addPublishedDrops(Picture &trace, const Paper &paper);

} // namespace klineage::ui
