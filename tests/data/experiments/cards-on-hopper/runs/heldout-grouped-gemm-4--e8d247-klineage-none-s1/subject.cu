/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 32)", "ceil_div(T, 8)"]
block = ["32", "8"]
args = ["a", "b", "offsets", "y", "int T", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Row r of y is row r of a times b[i], [K,N], where offsets[i] <= r < offsets[i + 1]; bf16 in and out, f32 sums.
// One thread owns one element of y, looks for its group, and walks K alone.

#include <cuda_bf16.h>

extern "C" __global__ void multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, const int *offsets,
                                    __nv_bfloat16 *y, int T, int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= T || col >= N)
        return;
    int group = 0;
    while (row >= offsets[group + 1])
        ++group;
    b += size_t(group) * K * N;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += __bfloat162float(a[size_t(row) * K + k]) * __bfloat162float(b[size_t(k) * N + col]);
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
