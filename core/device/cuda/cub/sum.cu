// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cub/rows.cuh"

#include <cub/device/device_segmented_reduce.cuh>

namespace klineage::cub_library {

cudaError_t sumRows(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const RowOffsets offsets = rowOffsets(call.columns);
    return cub::DeviceSegmentedReduce::Sum(workspace, bytes, static_cast<const float *>(call.in),
                                           static_cast<float *>(call.out), call.rows, offsets, offsets + 1,
                                           static_cast<cudaStream_t>(call.stream));
}

} // namespace klineage::cub_library
