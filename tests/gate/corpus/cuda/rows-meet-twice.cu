/*klineage
surface = "cuda"

[[workspace]]
name = "parts"
dtype = "f32"
shape = ["R", "8"]

[[launch]]
kernel = "softmax"
cooperative = true
grid = ["min(sm_count, ceil_div(R, 2))"]
block = [256]
args = ["x", "y", "parts", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Quarters of rows: maxima, the barrier of the grid group, sums, the barrier again, quotients.

#include <cooperative_groups.h>

extern "C" __global__ __launch_bounds__(256) void softmax(const float *x, float *y, float *parts, int R, int C)
{
    const int warps = gridDim.x * 8, warp = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    const auto grid = cooperative_groups::this_grid();
    for (int piece = warp; piece < 4 * R; piece += warps) {
        const float *in = x + size_t(piece / 4) * C;
        float top = __int_as_float(0xff800000);
        for (int i = piece % 4 * 32 + lane; i < C; i += 128)
            top = fmaxf(top, in[i]);
        for (int other = 16; other > 0; other /= 2)
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
        if (lane == 0)
            parts[piece / 4 * 8 + piece % 4] = top;
    }
    grid.sync();
    for (int piece = warp; piece < 4 * R; piece += warps) {
        const float *in = x + size_t(piece / 4) * C;
        float *p = parts + piece / 4 * 8;
        const float top = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3]));
        float sum = 0.0f;
        for (int i = piece % 4 * 32 + lane; i < C; i += 128)
            sum += expf(in[i] - top);
        for (int other = 16; other > 0; other /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (lane == 0)
            p[4 + piece % 4] = sum;
    }
    grid.sync();
    for (int piece = warp; piece < 4 * R; piece += warps) {
        const float *in = x + size_t(piece / 4) * C, *p = parts + piece / 4 * 8;
        float *out = y + size_t(piece / 4) * C;
        const float top = fmaxf(fmaxf(p[0], p[1]), fmaxf(p[2], p[3])), share = 1.0f / ((p[4] + p[5]) + (p[6] + p[7]));
        for (int i = piece % 4 * 32 + lane; i < C; i += 128)
            out[i] = expf(in[i] - top) * share;
    }
}
