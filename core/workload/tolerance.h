// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/workload/workload.h"

namespace klineage::workload {

/// The limits of the loosest error class among the outputs; none (all 0) where there is no output. Units as of Tolerance.
[[nodiscard]] Tolerance widestTolerance(const std::vector<Tensor> &tensors);

} // namespace klineage::workload
