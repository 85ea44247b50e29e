// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/analysis.h"
#include "ui/style/chip.h"

#include <QString>

namespace klineage::ui {

/// "memory-bound", with the reason's colour; empty while nothing is known.
[[nodiscard]] Chip chipOf(gate::BoundBy bound);

/// What bounds the kernel, with both intensities of its trial where there are two, and what the tools found, as rich text in the current theme's colours. Each finding leads to its
/// figure and to the lines where samples show it (explainLink()). Pure; kernel names are escaped.
[[nodiscard]] QString findingsHtml(const gate::Analysis &analysis, const std::string &intensities = {});

} // namespace klineage::ui
