// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/trial/trial.h"

#include <string_view>
#include <vector>

namespace klineage::gate::cuda {

/// Reads what `ptxas -v` says of each entry function: registers, static_shared, stack_frame, spill_stores, spill_loads (bytes).
/// Lines it does not know are passed over. Works without CUDA.
[[nodiscard]] std::vector<Metric> metricsFromPtxasLog(std::string_view log);

} // namespace klineage::gate::cuda
