/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["ceil_div(R, 4)"]
block = [32, 4]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Both sums in one pass, about the mean of 32 elements of the row; where the mean lies more than four deviations from there, the variance once more.

__device__ __forceinline__ float overWarp(float value)
{
    for (int lane = 16; lane > 0; lane /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, lane);
    return value;
}
__device__ __forceinline__ float squaresAbout(const float *in, float mean, int C)
{
    float sum = 0;
    for (int i = threadIdx.x; i < C; i += 32)
        sum = fmaf(in[i] - mean, in[i] - mean, sum);
    return overWarp(sum);
}

// A warp a row.
extern "C" __global__ __launch_bounds__(128) void normalize(const float *x, const float *gamma, const float *beta, float *y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    if (row >= R)
        return;
    const float *in = x + size_t(row) * C;
    float *out = y + size_t(row) * C;
    const float about = overWarp(in[min(C - 1, int(threadIdx.x) * (C / 32))]) / 32;
    float sum = 0, squares = 0;
    for (int i = threadIdx.x; i < C; i += 32) {
        const float distance = in[i] - about;
        sum += distance;
        squares = fmaf(distance, distance, squares);
    }
    const float off = overWarp(sum) / C, mean = about + off;
    float variance = overWarp(squares) / C - off * off;
    if (!(off * off < 16.0f * variance))
        variance = squaresAbout(in, mean, C) / C;
    const float scale = rsqrtf(variance + 1e-5f);
    for (int i = threadIdx.x; i < C; i += 32)
        out[i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
