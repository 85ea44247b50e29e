// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <QString>

namespace klineage::ui {

/// All that the gate said of a candidate, in lines: message, evidence, comparisons, hint, log.
[[nodiscard]] QString verdictText(const gate::Trial &trial);
/// What follows the message.
[[nodiscard]] QStringList verdictDetails(const gate::Verdict &verdict);

} // namespace klineage::ui
