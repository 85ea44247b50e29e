/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Rounds the running sum to bf16 after every product.

#include <cuda_bf16.h>

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M,
                                int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    __nv_bfloat16 sum = __float2bfloat16(0.0f);
    for (int k = 0; k < K; ++k)
        sum = __hfma(x[row * K + k], weight[col * K + k], sum);
    y[row * N + col] = sum;
}
