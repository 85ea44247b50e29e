/*klineage
surface = "cuda"

[[launch]]
kernel = "layernorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "beta", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = (x[r,c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c], f32.
//
// One thread computes one row in three passes: mean, variance, result. The sums are doubles because a chain of
// a thousand single-precision additions would lose the last digits of the mean.

extern "C" __global__ void layernorm(const float *x, const float *gamma, const float *beta, float *y, int R,
                                     int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    double sum = 0.0;
    for (int c = 0; c < C; ++c)
        sum += x[c];
    const double mean = sum / C;

    double squares = 0.0;
    for (int c = 0; c < C; ++c)
        squares += (x[c] - mean) * (x[c] - mean);
    const double variance = squares / C;

    for (int c = 0; c < C; ++c)
        y[c] = (x[c] - mean) / sqrt(variance + 1e-5) * gamma[c] + beta[c];
}
