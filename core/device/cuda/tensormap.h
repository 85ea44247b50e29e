// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/driver.h"
#include "core/kernel/plan.h"

namespace klineage::gate::cuda {

/// Encodes a tiled TMA descriptor over the tensor at `address`.
[[nodiscard]] Result<CUtensorMap> encodeTensorMap(const Driver &driver, const kernel::ResolvedTensorMap &map,
                                                  CUdeviceptr address);

} // namespace klineage::gate::cuda
