// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracles that normalize the innermost dimension of `in` [rows…, columns] and scale each column with `gamma` [columns]; in double,
/// the variance about the mean that was found before (two passes), ε = 1e-5. `out` is like in.
///   layernorm_rows   (in − mean) / √(variance + ε) · gamma + `beta` [columns]; the variance is divided by the columns
///   rmsnorm_rows     in / √(mean of in² + ε) · gamma
///   add_rmsnorm_rows rmsnorm_rows of in + `residual`, which is like in; `sum`, a second output like in, is in + residual itself
enum class Normalization { LayerNorm, RmsNorm, AddRmsNorm };
[[nodiscard]] Result<Expected> normalizationOracle(OracleRoles roles, Normalization normalization);

} // namespace klineage::gate
