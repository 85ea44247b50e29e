/*klineage
surface = "cuda"

[[launch]]
kernel = "multiply"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["a", "b", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[M,N] = a[M,K] · b[K,N], bf16 in and out, f32 sums. One thread owns one element of y and walks K alone.

#include <cuda_bf16.h>

extern "C" __global__ void multiply(const __nv_bfloat16 *a, const __nv_bfloat16 *b, __nv_bfloat16 *y, int M,
                                    int N, int K)
{
    const int row = blockIdx.y * 8 + threadIdx.y;
    const int col = blockIdx.x * 32 + threadIdx.x;
    if (row >= M || col >= N)
        return;

    float sum = 0.0f;
    for (int k = 0; k < K; ++k)
        sum += __bfloat162float(a[size_t(row) * K + k]) * __bfloat162float(b[size_t(k) * N + col]);
    y[size_t(row) * N + col] = __float2bfloat16(sum);
}
