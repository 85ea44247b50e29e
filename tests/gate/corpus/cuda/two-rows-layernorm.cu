/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["ceil_div(R, 2)"]
block = [32, 2]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A warp a row: mean, variance about it, result. The parent of others.


__device__ __forceinline__ float added(float v)
{
#pragma unroll
    for (int step = 16; step > 0; step /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, step);
    return v;
}
__device__ __forceinline__ float meanOf(const float *in, int C)
{
    float sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        sum += in[i];
    return added(sum) / C;
}
__device__ __forceinline__ float varianceOf(const float *in, float mean, int C)
{
    float sum = 0;
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        sum = fmaf(in[i] - mean, in[i] - mean, sum);
    return added(sum) / C;
}
// Two warps a block, each with a row of its own.
extern "C" __global__ __launch_bounds__(64) void normalize(const float *x, const float *gamma, const float *beta, float *y, int R, int C)
{
    const int row = blockIdx.x * 2 + threadIdx.y;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    const float mean = meanOf(in, C);
    const float variance = varianceOf(in, mean, C);
    const float scale = rsqrtf(variance + 1e-5f);
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        out[i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
