// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/gate/check/inputs.h"

#include <map>
#include <string>
#include <vector>

namespace klineage::gate {

/// Expected outputs in double, by tensor name, row-major.
using Expected = std::map<std::string, std::vector<double>>;

/// Computes what the workload's oracle says the outputs are, in double. Built-in oracles and the roles they take:
///   softmax_rows  in [rows, cols], out the same
///   silu          in of any shape, out the same
///   matmul_nn, matmul_nt, matmul_grouped_nn; conv2d_nhwc; attention_varlen, attention_varlen_causal; gated_delta_rule; layernorm_rows,
///   rmsnorm_rows, add_rmsnorm_rows; sum_rows, cumsum_rows, sort_rows; topk_rows, topk_sorted_rows:
///   product.h, convolution.h, attention.h, gateddelta.h, normalization.h, rowoperations.h, selection.h
/// A Python oracle is computed by a process that is started for it (PythonOracles keep one).
/// Roles name tensors in workload.oracleArgs. Fails when the oracle is unknown or the shapes do not fit. Multi-threaded.
[[nodiscard]] Result<Expected> computeOracle(const workload::Workload &workload,
                                             const std::vector<HostTensor> &tensors);

} // namespace klineage::gate
