// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/base/result.h"
#include "core/device/backend.h"

namespace klineage::gate::cuda {

/// The products that a call of a cuBLAS library asks for: out[m, n] = a[m, k] · b, `batch` of them one behind the other. Sizes of the
/// call: n, k, and m; batch may be left out (1); t in place of m: the rows of all the batch, t / batch for each.
struct GemmCall {
    int batch = 1;
    int m = 0;
    int n = 0;
    int k = 0;
    bool transposeB = false; ///< b is [n, k], otherwise [k, n]

    [[nodiscard]] long long strideA() const { return static_cast<long long>(m) * k; }
    [[nodiscard]] long long strideB() const { return static_cast<long long>(k) * n; }
    [[nodiscard]] long long strideOut() const { return static_cast<long long>(m) * n; }
};

/// InvalidInput when a size is missing or the rows are no multiple of the batch. transposeB follows from the operator's name.
[[nodiscard]] Result<GemmCall> gemmCallOf(const ReferenceCall &call);

} // namespace klineage::gate::cuda
