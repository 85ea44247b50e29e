/*klineage
surface = "cuda"

[[launch]]
kernel = "rmsnorm"
grid = ["ceil_div(R, 64)"]
block = ["64"]
args = ["x", "gamma", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// y[r,c] = x[r,c] / sqrt(mean of x[r]² + 1e-5) * gamma[c], f32.
//
// One thread computes one row in two passes: mean square, result.

extern "C" __global__ void rmsnorm(const float *x, const float *gamma, float *y, int R, int C)
{
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= R)
        return;
    x += size_t(row) * C;
    y += size_t(row) * C;

    float squares = 0.0f;
    for (int c = 0; c < C; ++c)
        squares += x[c] * x[c];

    for (int c = 0; c < C; ++c)
        y[c] = x[c] / sqrtf(squares / C + 1e-5f) * gamma[c];
}
