// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "ui/runs/runcontroller.h"
#include "ui/runs/runentry.h"

namespace klineage::ui {

/// "$0.12 + $0.30 reserved of $10 · 12 345 tokens in, 3 210 out"
[[nodiscard]] QString spendingText(const RunProgress &progress);
/// What the run is doing and what it has spent, in a line.
[[nodiscard]] QString progressLine(const RunProgress &progress);
/// How a run that does not go on here ended, or how it stands.
[[nodiscard]] QString endingLine(const RunEntry &run);

} // namespace klineage::ui
