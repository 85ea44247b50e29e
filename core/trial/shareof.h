// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/verdict.h"

namespace klineage::gate {

/// count of trials with the exact interval of 95 % (Clopper and Pearson 1934); {0, 0, 1} of none.
[[nodiscard]] Interval shareOf(int count, int trials);

} // namespace klineage::gate
