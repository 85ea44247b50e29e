// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/oracle.h"
#include "core/gate/check/roles.h"

namespace klineage::gate {

/// Oracles of matrix products, every product and sum in double:
///   matmul_nn           a [batch…, m, k], b [batch…, k, n], out [batch…, m, n]: each of the batch by itself; usually there is none
///   matmul_nt           the same, but b [batch…, n, k]
///   matmul_grouped_nn   a [rows, k], b [groups, k, n], offsets [groups + 1] from 0 ascending to rows, out [rows, n]: row r of out is row r
///                       of a times b[g], where offsets[g] ≤ r < offsets[g + 1]; a group may be empty
/// `bias` [n], which may be left out, is added to every row of out. Inputs have at most 32 bits an element.
enum class Product { Nn, Nt, GroupedNn };

/// What they have in common: a and out are rows [rows, k] and [rows, n], and a group of them is multiplied by a matrix of its own.
struct GroupedProduct {
    const HostTensor *a = nullptr;
    const HostTensor *b = nullptr;
    const HostTensor *bias = nullptr; ///< or nullptr
    const HostTensor *out = nullptr;
    std::int64_t n = 0;
    std::int64_t k = 0;
    std::vector<std::int64_t> offsets; ///< where each group's rows begin, and their end
    bool transposeB = false;           ///< each matrix of b is [n, k], otherwise [k, n]
};

/// Fails when the tensors do not fit together.
[[nodiscard]] Result<GroupedProduct> groupedProductOf(OracleRoles &roles, Product product);
[[nodiscard]] Result<Expected> productOracle(OracleRoles roles, Product product);

} // namespace klineage::gate
