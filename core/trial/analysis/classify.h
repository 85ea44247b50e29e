// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/analysis/analysis.h"
#include "core/trial/analysis/figures.h"

namespace klineage::gate {

/// Fills classification, intensity, ridge and shares.
void classify(const Trial &trial, const std::optional<Roof> &roof, const Figures &figures,
              Analysis &analysis);

} // namespace klineage::gate
