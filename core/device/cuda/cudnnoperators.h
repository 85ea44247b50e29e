// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/backend.h"
#include "core/device/cuda/cudnngraph.h"

#include <array>
#include <optional>

namespace klineage::gate::cuda {

/// Strides of a 4-D tensor that the workload and the kernel lay out differently.
struct CudnnRelayout {
    std::array<int, 4> dims;
    std::array<int, 4> plain; ///< as the workload has it
    std::array<int, 4> laid;  ///< as the kernel wants it
    [[nodiscard]] std::size_t elements() const
    {
        std::size_t count = 1;
        for (const int extent : dims)
            count *= static_cast<std::size_t>(extent);
        return count;
    }
};

/// What a plan's tensor is bound to: a role's buffer (or a copy of it in another layout), or a scalar.
struct CudnnSlot {
    std::int64_t uid = 0;
    std::string role; ///< empty: the scalar
    bool output = false;
    std::optional<CudnnRelayout> relayout;
    float value = 0;
};

struct CudnnOperator {
    std::vector<CudnnSlot> slots;
    std::vector<CudnnPlan> plans; ///< any of them computes it
};

/// Sizes n, h, w, c, f; roles data, weight, out: see makeCudnnSubject().
[[nodiscard]] Result<CudnnOperator> cudnnConvolution(CudnnGraph &graph, const ReferenceCall &call, bool nchw);
/// Sizes b, t, h, d, kv_h; roles q, k, v, out. alternative: another form, into a graph of its own: without a mask the single node of newer
/// versions, with one the chain with other types, where no engine takes the first.
[[nodiscard]] Result<CudnnOperator> cudnnAttention(CudnnGraph &graph, CudnnGraph &alternative,
                                                   const ReferenceCall &call, bool causal);

} // namespace klineage::gate::cuda
