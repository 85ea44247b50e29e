// SPDX-License-Identifier: GPL-3.0-or-later
#include "core/device/cuda/cub/rows.cuh"

#include <cub/device/device_scan.cuh>

namespace klineage::cub_library {

cudaError_t scanRows(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const unsigned count = static_cast<unsigned>(call.rows) * static_cast<unsigned>(call.columns);
    return cub::DeviceScan::InclusiveSumByKey(
        workspace, bytes, rowNumbers(call.columns), static_cast<const float *>(call.in),
        static_cast<float *>(call.out), count, ::cuda::std::equal_to<>{},
        static_cast<cudaStream_t>(call.stream));
}

} // namespace klineage::cub_library
