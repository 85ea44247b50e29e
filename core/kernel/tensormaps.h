// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/kernel/plan.h"

namespace klineage::kernel {

/// For resolvePlan(), and for maps that a language's compiler makes: a tensor map over a buffer with concrete extents. Checks what
/// cuTensorMapEncodeTiled demands (CUDA driver API, tensor map object management), because the driver only
/// says "invalid value": rank 1 to 5; extents in [1, 2^32); strides multiples of 16 bytes and below 2^40; box
/// extents in [1, 256]; the innermost box extent a multiple of 16 bytes, and no wider than the swizzle span.
[[nodiscard]] Result<ResolvedTensorMap> resolveTensorMap(const TensorMap &map, const ResolvedBuffer &buffer,
                                                         const Bindings &bindings);

} // namespace klineage::kernel
