// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracle conv2d_nhwc: data [n, h, w, c], weight [r·r·c, f] (flattened row, column, channel; r odd), out [n, h, w, f]:
/// cross-correlation with stride 1 and zeros for padding, (r − 1) / 2 on every side.
[[nodiscard]] Result<Expected> convolutionOracle(OracleRoles roles);

} // namespace klineage::gate
