// SPDX-License-Identifier: GPL-3.0-or-later
// From gemm/sm90/K05: where a chunk of a shared row of 128 bytes lies.

constexpr int CHUNKS = 8;

// Row r keeps chunk c at place c ^ (r % 8): eight neighbouring rows cover all 32 banks.
__device__ __forceinline__ int place(int row, int chunk)
{
    return row * CHUNKS + (chunk ^ (row % 8));
}
