// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracle attention_varlen: q [tokens, heads, dim], k and v [kv tokens, kv heads, dim], packed one sequence after another; cu_q and
/// cu_k [sequences + 1], where each begins; out like q: softmax(q·kᵀ / √dim)·v within each sequence and head. Of the heads of q as many
/// as heads / kv heads, which must be whole, share one head of k and v: the first ones the first, and so on.
/// Oracle attention_varlen_causal: the same, but of m queries and n keys the i-th query (from 0) attends to the first i + 1 + n − m keys
/// only, so that the last one sees all of them; a query that sees none has zeros.
/// The offsets begin with 0, ascend, and end with the tokens; every sequence that has queries has keys.
[[nodiscard]] Result<Expected> attentionOracle(OracleRoles roles, bool causal);

} // namespace klineage::gate
