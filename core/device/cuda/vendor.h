// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/handle.h"
#include "core/device/cuda/subject.h"

#include <cstddef>
#include <functional>
#include <utility>

namespace klineage::gate::cuda {

/// What a vendor routine needs of the device. The driver outlives every subject.
struct VendorContext {
    const Driver &driver;
    CUstream stream = nullptr; ///< everything runs on it
};

/// Workspace of a vendor routine, or other layouts of its operands.
[[nodiscard]] Result<DeviceMemory> vendorMemory(const Driver &driver, std::size_t bytes);

/// Which of `count` ways to enqueue one run takes the least device time, measured as replays of a graph. Ways that fail, or cannot be
/// captured, are left out; fails when none is left, with what the first of them said.
[[nodiscard]] Result<std::size_t> fastest(const VendorContext &context, std::size_t count,
                                          const std::function<Status(std::size_t)> &enqueue);

/// ErrorCode::InvalidInput unless the call has these sizes, and every set a buffer for each of these roles.
[[nodiscard]] Status requireRoles(const ReferenceCall &call, const std::vector<AddressSet> &sets,
                                  const std::vector<std::string> &sizes,
                                  const std::vector<std::string> &roles);

/// The routine that a call names, on CUDA: cublas, cublaslt, cudnn, cub. ErrorCode::Unavailable when its library is not installed.
[[nodiscard]] Result<std::unique_ptr<Subject>> makeVendorSubject(const VendorContext &context,
                                                                 const ReferenceCall &call,
                                                                 std::vector<AddressSet> sets);

/// cuBLASLt, with the fastest of the algorithms that its heuristics propose:
///   gemm_nt, gemm_nn     as those of cuBLAS
///   gemm_nn_bias         gemm_nn, and bias[n] is added to every row before it is rounded
///   gemm_nt_f8e4m3       a and b in e4m3 without scales, m, n and k multiples of 16; sums are carried on in f32
///   gemm_nt_f8e4m3_fast  the same with its fast accumulation: sums stay in the tensor cores, at about 14 bits
[[nodiscard]] Result<std::unique_ptr<Subject>> makeCublasLtSubject(const VendorContext &context,
                                                                   const ReferenceCall &call,
                                                                   std::vector<AddressSet> sets);

/// CUB over rows of f32: sum_rows, cumsum_rows, sort_rows, topk_rows (roles in, out, and indices of topk; sizes rows, columns, and k of
/// topk; cub/cublibrary.h says what they do), each with the fastest of the routines that do it.
[[nodiscard]] Result<std::unique_ptr<Subject>> makeCubSubject(const VendorContext &context,
                                                              const ReferenceCall &call,
                                                              std::vector<AddressSet> sets);

/// cuDNN, in f16 with f32 accumulation, each with the fastest of the plans that its heuristics propose:
///   conv2d_nhwc, conv2d_nchw   out[n, h, w, f] = data[n, h, w, c] ∗ weight[3·3·c, f], stride 1, padding 1; sizes n, h, w, c, f. The
///                              weights, and for nchw the data, are laid out as the kernels want them before anything is timed.
///   sdpa                       roles q, k, v, out [t, h, d]; sizes b, t, h, d: b sequences of t / b tokens each;
///                              kv_h, which may be left out: heads of k and v, each for h / kv_h of q
///   sdpa_causal                the same, each query attending to the keys up to its own place
[[nodiscard]] Result<std::unique_ptr<Subject>> makeCudnnSubject(const VendorContext &context,
                                                                const ReferenceCall &call,
                                                                std::vector<AddressSet> sets);

} // namespace klineage::gate::cuda
