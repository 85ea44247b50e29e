// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cub/rows.cuh"

#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <algorithm>

namespace klineage::cub_library {

cudaError_t sortRowsRadix(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const RowOffsets offsets = rowOffsets(call.columns);
    return cub::DeviceSegmentedRadixSort::SortKeys(
        workspace, bytes, static_cast<const float *>(call.in), static_cast<float *>(call.out),
        call.rows * call.columns, call.rows, offsets, offsets + 1, 0, 8 * static_cast<int>(sizeof(float)),
        static_cast<cudaStream_t>(call.stream));
}

cudaError_t sortRowsMerge(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const RowOffsets offsets = rowOffsets(call.columns);
    for (int row = 0; row < call.rows; row += segmentsAtATime) {
        const int rows = std::min(segmentsAtATime, call.rows - row);
        const size_t first = static_cast<size_t>(row) * static_cast<size_t>(call.columns);
        const cudaError_t error = cub::DeviceSegmentedSort::SortKeys(
            workspace, bytes, static_cast<const float *>(call.in) + first,
            static_cast<float *>(call.out) + first, rows * call.columns, rows, offsets, offsets + 1,
            static_cast<cudaStream_t>(call.stream));
        if (error != cudaSuccess || !workspace) // the first part takes the most
            return error;
    }
    return cudaSuccess;
}

} // namespace klineage::cub_library
