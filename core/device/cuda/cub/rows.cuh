// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "core/device/cuda/cub/rows.h"

#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>

namespace klineage::cub_library {

/// Where a row begins.
struct RowBegin {
    int columns;
    __host__ __device__ int operator()(int row) const { return row * columns; }
};
using RowOffsets = thrust::transform_iterator<RowBegin, thrust::counting_iterator<int>, int, int>;

inline RowOffsets rowOffsets(int columns, int first = 0)
{
    return {thrust::counting_iterator<int>(first), RowBegin{columns}};
}

/// Which row an element is in.
struct RowOf {
    unsigned columns;
    __host__ __device__ unsigned operator()(unsigned element) const { return element / columns; }
};
using RowNumbers = thrust::transform_iterator<RowOf, thrust::counting_iterator<unsigned>, unsigned, unsigned>;

inline RowNumbers rowNumbers(int columns)
{
    return {thrust::counting_iterator<unsigned>(0), RowOf{static_cast<unsigned>(columns)}};
}

/// DeviceSegmentedSort groups its segments by size when there are more than this, and then waits for the device, which cannot be
/// captured. Of segments of one size it has nothing to gain, so it gets no more at a time.
constexpr int segmentsAtATime = 300;

} // namespace klineage::cub_library
