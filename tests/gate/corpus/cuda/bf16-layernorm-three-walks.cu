/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["R"]
block = [128]
args = ["x", "gamma", "beta", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Mean, variance about it, and results: three walks over the row; a parent.
#include <cuda_bf16.h>

// Over the 128 threads of a block, two sums at once.
__device__ __forceinline__ float2 overBlock(float a, float b)
{
    __shared__ float2 parts[4];
    for (int lane = 16; lane > 0; lane /= 2) {
        a += __shfl_xor_sync(0xffffffffu, a, lane);
        b += __shfl_xor_sync(0xffffffffu, b, lane);
    }
    __syncthreads();
    if (threadIdx.x % 32 == 0)
        parts[threadIdx.x / 32] = make_float2(a, b);
    __syncthreads();
    float2 all = make_float2(0, 0);
    for (int i = 0; i < 4; ++i) {
        all.x += parts[i].x;
        all.y += parts[i].y;
    }
    return all;
}
extern "C" __global__ __launch_bounds__(128) void normalize(const __nv_bfloat16 *x, const float *gamma, const float *beta, __nv_bfloat16 *y, int C)
{
    const __nv_bfloat16 *in = x + size_t(blockIdx.x) * C;
    __nv_bfloat16 *out = y + size_t(blockIdx.x) * C;
    float sum = 0;
    for (int i = threadIdx.x; i < C; i += 128)
        sum += __bfloat162float(in[i]);
    const float mean = overBlock(sum, 0).x / C;
    float squares = 0;
    for (int i = threadIdx.x; i < C; i += 128) {
        const float off = __bfloat162float(in[i]) - mean;
        squares = fmaf(off, off, squares);
    }
    const float variance = overBlock(squares, 0).x / C;
    const float scale = rsqrtf(variance + 1e-5f);
    for (int i = threadIdx.x; i < C; i += 128)
        out[i] = __float2bfloat16((__bfloat162float(in[i]) - mean) * scale * gamma[i] + beta[i]);
}
