// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QString>

namespace klineage::ui {

/// Why a comparison of a trial is undecided, as far as the trial recorded it: the half-width that its interval has and the one at which it
/// would decide, or that the difference is within the noise; then what disturbed the times, and when timing ended. Empty: it is decided.
[[nodiscard]] QString undecidedText(const gate::Trial &trial, const gate::Comparison &comparison);

} // namespace klineage::ui
