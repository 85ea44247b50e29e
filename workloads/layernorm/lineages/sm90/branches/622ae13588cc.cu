/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 4)"]
block = ["32", "4"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// A warp a row, three passes over it: mean, variance, result. The lanes' sums meet in a butterfly of shuffles.

// All 32 lanes of the warp must call it; each gets the sum.
__device__ float warpSum(float value)
{
    #pragma unroll
    for (int mask = 16; mask > 0; mask /= 2)
        value += __shfl_xor_sync(0xffffffffu, value, mask);
    return value;
}

extern "C" __global__ void layernorm(const float *__restrict__ x, const float *__restrict__ gamma,
                                     const float *__restrict__ beta, float *__restrict__ y, int R, int C)
{
    const int row = blockIdx.x * 4 + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R) // the same for all lanes of a warp
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float sum = 0.0f;
    for (int c = lane; c < C; c += 32)
        sum += x[c];
    const float mean = warpSum(sum) / C;

    float squares = 0.0f;
    for (int c = lane; c < C; c += 32)
        squares += (x[c] - mean) * (x[c] - mean);
    const float deviation = sqrtf(warpSum(squares) / C + 1e-5f);

    for (int c = lane; c < C; c += 32)
        y[c] = (x[c] - mean) / deviation * gamma[c] + beta[c];
}
