// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/story/chain/chain.h"
#include "ui/story/picture/picture.h"

namespace klineage::ui {

/// The waterfall: latency on a logarithmic axis from K0 to K*, a bar for what each step won or lost, with the step's title, its card and what
/// bounds the state; the reference as a line; beside it, joined to the state that they were tried from, rejected attempts at their own
/// latency and failed ones below. `upTo` fades what comes after that point and says nothing of it; -1: all is shown. Pure.
[[nodiscard]] Picture waterfall(const Chain &chain, int upTo = -1);

/// The way back: speed as a part of K*'s, from K* to K0, with a drop for each step that is taken away. Pure.
[[nodiscard]] Picture deoptimizationTrace(const Chain &chain);

} // namespace klineage::ui
