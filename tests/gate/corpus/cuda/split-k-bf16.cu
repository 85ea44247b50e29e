/*klineage
surface = "cuda"

[[workspace]]
name = "total"
dtype = "f32"
shape = ["M", "N"]
init = "zero"

[[launch]]
kernel = "parts"
grid = ["ceil_div(N, 32)", "ceil_div(M, 8)", "4"]
block = ["32", "8"]
args = ["x", "weight", "total", "int M", "int N", "int K"]

[[launch]]
kernel = "finish"
grid = ["ceil_div(M * N, 256)"]
block = ["256"]
args = ["total", "y", "int M * N"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four parts of K added with atomics in a cleared single-precision workspace, then rounded to bf16.

#include <cuda_bf16.h>

extern "C" __global__ void parts(const __nv_bfloat16 *x, const __nv_bfloat16 *weight, float *total, int M,
                                 int N, int K)
{
    const int col = blockIdx.x * 32 + threadIdx.x;
    const int row = blockIdx.y * 8 + threadIdx.y;
    if (row >= M || col >= N)
        return;
    float sum = 0.0f;
    for (int k = blockIdx.z; k < K; k += 4)
        sum += __bfloat162float(x[row * K + k]) * __bfloat162float(weight[col * K + k]);
    atomicAdd(total + row * N + col, sum);
}

extern "C" __global__ void finish(const float *total, __nv_bfloat16 *y, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        y[i] = __float2bfloat16(total[i]);
}
