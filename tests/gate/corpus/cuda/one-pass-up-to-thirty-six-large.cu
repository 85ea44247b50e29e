/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["ceil_div(R, 2)"]
block = [32, 2]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The same of 4096 rows of 1024.


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
    float mean, variance;
    bool careful = C < 64;
    if (!careful) {
        float sum = 0, squares = 0;
#pragma unroll 4
        for (int i = threadIdx.x; i < C; i += 32) {
            sum += in[i];
            squares = fmaf(in[i], in[i], squares);
        }
        mean = added(sum) / C;
        variance = added(squares) / C - mean * mean;
        careful = !(variance > 7.7e-4f * mean * mean);
    }
    if (careful) {
        mean = meanOf(in, C);
        variance = varianceOf(in, mean, C);
    }
    const float scale = rsqrtf(variance + 1e-5f);
#pragma unroll 4
    for (int i = threadIdx.x; i < C; i += 32)
        out[i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
