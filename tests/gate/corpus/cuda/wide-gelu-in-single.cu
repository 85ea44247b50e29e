/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 1024)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// GELU of doubles in single precision: of results of 64 bits 2^-17 is asked, as of those of 32.
extern "C" __global__ __launch_bounds__(256) void activate(const double *x, double *y, int count)
{
#pragma unroll
    for (int i = 0; i < 4; ++i) {
        const int at = blockIdx.x * 1024 + i * 256 + threadIdx.x;
        if (at < count) {
            const float v = float(x[at]);
            y[at] = 0.5f * v * (1.0f + erff(0.70710678f * v));
        }
    }
}
