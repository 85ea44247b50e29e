/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["R", "4"]

[[launch]]
kernel = "sums"
cooperative = true
grid = ["min(sm_count, ceil_div(R, 2))"]
block = [256]
args = ["x", "y", "parts", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Quarters of rows, the barrier of the toolkit's own grid group (which counts in memory of the driver's), then the sums.

#include <cooperative_groups.h>

extern "C" __global__ __launch_bounds__(256) void sums(const float *x, float *y, float *parts, int R, int C)
{
    const int warps = gridDim.x * 8, warp = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int piece = warp; piece < 4 * R; piece += warps) {
        const float *in = x + size_t(piece / 4) * C;
        float sum = 0.0f;
        for (int i = piece % 4 * 32 + lane; i < C; i += 128)
            sum += in[i];
        for (int other = 16; other > 0; other /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (lane == 0)
            parts[piece] = sum;
    }
    cooperative_groups::this_grid().sync();
    for (int row = blockIdx.x * 256 + threadIdx.x; row < R; row += gridDim.x * 256) {
        const float *p = parts + 4 * row;
        y[row] = (p[0] + p[1]) + (p[2] + p[3]);
    }
}
