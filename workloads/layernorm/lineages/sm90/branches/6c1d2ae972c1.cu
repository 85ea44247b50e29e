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
// y[r,c] = (x[r,c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c], f32.
//
// One warp computes one row in three passes: mean, variance, result. Its lanes read neighbouring elements at
// stride 32. The sums are doubles because a chain of single-precision additions would lose the last digits of
// the mean.

constexpr int ROWS = 4; // rows, and so warps, a block; the launch plan's block and grid agree with it

// The sum over the 32 lanes; every lane gets it. All lanes of the warp must call it.
__device__ __forceinline__ double warp_sum(double v)
{
    for (int offset = 16; offset > 0; offset /= 2)
        v += __shfl_xor_sync(0xffffffffu, v, offset);
    return v;
}

extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int R,
                                     int C)
{
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const int lane = threadIdx.x;
    if (row >= R) // the same for the whole warp
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    double sum = 0.0;
    for (int c = lane; c < C; c += 32)
        sum += x[c];
    const double mean = warp_sum(sum) / C;

    double squares = 0.0;
    for (int c = lane; c < C; c += 32)
        squares += (x[c] - mean) * (x[c] - mean);
    const double variance = warp_sum(squares) / C;

    for (int c = lane; c < C; c += 32)
        y[c] = (x[c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c];
}
