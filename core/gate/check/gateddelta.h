// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracle gated_delta_rule: q, k [batch, tokens, key heads, keys]; v [batch, tokens, heads, columns]; g, beta [batch, tokens, heads];
/// initial_state, final_state [batch, heads, keys, columns]; out like v. Head h takes the q and k of key head
/// h / (heads / key heads). From the initial state S, token by token:
///   S ← exp(g)·S;  u = beta·(v − Sᵀk);  S ← S + k uᵀ;  out = Sᵀq / √keys.
[[nodiscard]] Result<Expected> gatedDeltaOracle(OracleRoles roles);

} // namespace klineage::gate
