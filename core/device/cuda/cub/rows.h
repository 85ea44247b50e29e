// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/cub/cublibrary.h"

#include <cuda_runtime_api.h>

namespace klineage::cub_library {

/// The operators of cublibrary.h. With workspace null, bytes is set and nothing is run.
cudaError_t sumRows(const KlineageCubCall &call, void *workspace, size_t &bytes);
cudaError_t scanRows(const KlineageCubCall &call, void *workspace, size_t &bytes);
cudaError_t sortRowsRadix(const KlineageCubCall &call, void *workspace, size_t &bytes);
cudaError_t sortRowsMerge(const KlineageCubCall &call, void *workspace, size_t &bytes);
cudaError_t topkRowsRadix(const KlineageCubCall &call, void *workspace, size_t &bytes);
cudaError_t topkRowsMerge(const KlineageCubCall &call, void *workspace, size_t &bytes);
/// Fills what runs of topk_rows only read.
cudaError_t topkPrepare(const KlineageCubCall &call);

} // namespace klineage::cub_library
