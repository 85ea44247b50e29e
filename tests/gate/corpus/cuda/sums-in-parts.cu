/*klineage
surface = "cuda"

[[launch]]
kernel = "gemm"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)"]
block = ["32", "8"]
args = ["x", "weight", "y", "int M", "int N", "int K"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Adds the sixteen products of each part first, then the parts.

#include <cuda_bf16.h>

extern "C" __global__ void gemm(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, __nv_bfloat16 *y, int M,
                                int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = 0; k < K; k += 16) {
        float part = 0.0f;
        for (int i = k; i < min(k + 16, K); ++i)
            part = fmaf(__bfloat162float(x[row * K + i]), __bfloat162float(weight[col * K + i]), part);
        sum += part;
    }
    y[row * N + col] = __float2bfloat16(sum);
}
