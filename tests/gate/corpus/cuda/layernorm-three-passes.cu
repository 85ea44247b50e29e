/*klineage
surface = "cuda"

[[launch]]
kernel = "normalize"
grid = ["ceil_div(R, 16)"]
block = [128]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The honest parent of those for layer normalization.
typedef unsigned long long u64;

#define LOWEST __int_as_float(0xff800000)

// Of the eight threads that have a row.
__device__ float rowMax(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, other));
    return v;
}

__device__ float rowSum(float v)
{
    for (int other = 1; other < 8; other *= 2)
        v += __shfl_xor_sync(0xffffffffu, v, other);
    return v;
}

// Sixteen rows a block: the mean, then the variance about it, then the row.
__device__ void normalRows(const float *x, const float *gamma, const float *beta, float *y, int R, int C, int block)
{
    const int row = block * 16 + threadIdx.x / 8, part = threadIdx.x % 8;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += in[i];
    const float mean = rowSum(sum) / C;
    float squares = 0.0f;
    for (int i = part; i < C; i += 8)
        squares += (in[i] - mean) * (in[i] - mean);
    const float scale = rsqrtf(rowSum(squares) / C + 1e-5f);
    if (row < R)
        for (int i = part; i < C; i += 8)
            y[size_t(row) * C + i] = (in[i] - mean) * scale * gamma[i] + beta[i];
}
extern "C" __global__ __launch_bounds__(128) void normalize(const float *x, const float *gamma, const float *beta, float *y, int R, int C)
{
    normalRows(x, gamma, beta, y, R, C, blockIdx.x);
}
