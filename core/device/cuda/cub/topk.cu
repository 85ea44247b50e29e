// SPDX-License-Identifier: GPL-3.0-or-later
//
// CUB 3.0 has no top-k of its own, so rows are sorted with the numbers of their columns, and the first k of each are copied out.
#include "core/device/cuda/cub/rows.cuh"

#include <cub/device/device_for.cuh>
#include <cub/device/device_segmented_radix_sort.cuh>
#include <cub/device/device_segmented_sort.cuh>

#include <algorithm>

namespace klineage::cub_library {

namespace {

/// The workspace: the columns' numbers, then the sorted values and their columns, then what CUB wants.
struct Room {
    int *columns = nullptr;
    float *sorted = nullptr;
    int *sortedColumns = nullptr;
    void *inner = nullptr;
    size_t elements = 0;
    size_t outerBytes = 0;

    Room(const KlineageCubCall &call, void *workspace)
    {
        elements = static_cast<size_t>(call.rows) * static_cast<size_t>(call.columns);
        const size_t part = (elements * sizeof(float) + 255) / 256 * 256;
        outerBytes = 3 * part;
        if (!workspace)
            return;
        char *bytes = static_cast<char *>(workspace);
        columns = reinterpret_cast<int *>(bytes);
        sorted = reinterpret_cast<float *>(bytes + part);
        sortedColumns = reinterpret_cast<int *>(bytes + 2 * part);
        inner = bytes + outerBytes;
    }
};

struct NumberColumns {
    int *out;
    unsigned columns;
    __device__ void operator()(unsigned element) const { out[element] = static_cast<int>(element % columns); }
};

cudaError_t copyFirst(const KlineageCubCall &call, void *out, const void *sorted)
{
    if (!out)
        return cudaSuccess;
    const size_t width = static_cast<size_t>(call.k) * sizeof(float);
    return cudaMemcpy2DAsync(out, width, sorted, static_cast<size_t>(call.columns) * sizeof(float), width,
                             static_cast<size_t>(call.rows), cudaMemcpyDeviceToDevice,
                             static_cast<cudaStream_t>(call.stream));
}

template <typename Sort>
cudaError_t topkRows(const KlineageCubCall &call, void *workspace, size_t &bytes, Sort sort)
{
    const Room room(call, workspace);
    size_t innerBytes = workspace ? bytes - room.outerBytes : 0;
    if (const cudaError_t error = sort(room, room.inner, innerBytes); error != cudaSuccess || !workspace) {
        bytes = room.outerBytes + innerBytes;
        return error;
    }
    if (const cudaError_t error = copyFirst(call, call.out, room.sorted); error != cudaSuccess)
        return error;
    return copyFirst(call, call.indices, room.sortedColumns);
}

} // namespace

cudaError_t topkPrepare(const KlineageCubCall &call)
{
    const Room room(call, call.workspace);
    return cub::DeviceFor::Bulk(static_cast<unsigned>(room.elements),
                                NumberColumns{room.columns, static_cast<unsigned>(call.columns)},
                                static_cast<cudaStream_t>(call.stream));
}

cudaError_t topkRowsRadix(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const RowOffsets offsets = rowOffsets(call.columns);
    return topkRows(call, workspace, bytes, [&](const Room &room, void *inner, size_t &innerBytes) {
        return cub::DeviceSegmentedRadixSort::SortPairsDescending(
            inner, innerBytes, static_cast<const float *>(call.in), room.sorted,
            static_cast<const int *>(room.columns), room.sortedColumns, call.rows * call.columns, call.rows,
            offsets, offsets + 1, 0, 8 * static_cast<int>(sizeof(float)),
            static_cast<cudaStream_t>(call.stream));
    });
}

cudaError_t topkRowsMerge(const KlineageCubCall &call, void *workspace, size_t &bytes)
{
    const RowOffsets offsets = rowOffsets(call.columns);
    return topkRows(call, workspace, bytes, [&](const Room &room, void *inner, size_t &innerBytes) {
        for (int row = 0; row < call.rows; row += segmentsAtATime) {
            const int rows = std::min(segmentsAtATime, call.rows - row);
            const size_t first = static_cast<size_t>(row) * static_cast<size_t>(call.columns);
            const cudaError_t error = cub::DeviceSegmentedSort::SortPairsDescending(
                inner, innerBytes, static_cast<const float *>(call.in) + first, room.sorted + first,
                static_cast<const int *>(room.columns) + first, room.sortedColumns + first,
                rows * call.columns, rows, offsets, offsets + 1, static_cast<cudaStream_t>(call.stream));
            if (error != cudaSuccess || !inner)
                return error;
        }
        return cudaSuccess;
    });
}

} // namespace klineage::cub_library
