// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracles over the innermost dimension of `in` [rows…, columns], in double:
///   sum_rows      out [rows…], or [rows…, 1]
///   cumsum_rows   out like in: element i is the sum of elements 0 … i
///   sort_rows     out like in: ascending, NaN last
enum class RowOperation { Sum, CumulativeSum, Sort };
[[nodiscard]] Result<Expected> rowOracle(OracleRoles roles, RowOperation operation);

} // namespace klineage::gate
