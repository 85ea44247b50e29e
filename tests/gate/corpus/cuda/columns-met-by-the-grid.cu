/*klineage
surface = "cuda"

[[workspace]]
name = "moments"
dtype = "f32"
shape = ["R", "4", "3"]

[[launch]]
kernel = "normalize"
cooperative = true
grid = ["min(sm_count, ceil_div(R, 2))"]
block = [256]
args = ["x", "gamma", "beta", "y", "moments", "int R", "int C", "int R - R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Quarters of rows: count, mean and squares into a workspace, the barrier of the grid, then the rows.

#include <cooperative_groups.h>
extern "C" __global__ __launch_bounds__(256) void normalize(const float *x, const float *gamma, const float *beta, float *y, float *moments, int R, int C, int turn)
{
    volatile float kept[128]; // what a lane has read, as far as it goes
    const int warps = gridDim.x * 8, warp = blockIdx.x * 8 + threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int piece = warp; piece < 4 * R; piece += warps) {
        const float *in = x + size_t(piece / 4) * C;
        float sum = 0;
        int n = 0;
        for (int i = piece % 4 * 32 + lane; i < C; i += 128, ++n) {
            if (n < 128)
                kept[(n + turn) & 127] = in[i];
            sum += in[i];
        }
        float count = n;
        for (int other = 16; other > 0; other /= 2) {
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
            count += __shfl_xor_sync(0xffffffffu, count, other);
        }
        const float mean = count > 0 ? sum / count : 0;
        float squares = 0;
        for (int k = 0; k < n; ++k) {
            const float off = (k < 128 ? kept[(k + turn) & 127] : in[piece % 4 * 32 + lane + 128 * k]) - mean;
            squares = fmaf(off, off, squares);
        }
        for (int other = 16; other > 0; other /= 2)
            squares += __shfl_xor_sync(0xffffffffu, squares, other);
        if (lane == 0) {
            moments[3 * piece] = count;
            moments[3 * piece + 1] = mean;
            moments[3 * piece + 2] = squares;
        }
    }
    cooperative_groups::this_grid().sync();
    for (int row = warp; row < R; row += warps) {
        float count = 0, mean = 0, squares = 0;
        for (int part = 0; part < 4; ++part) {
            const float *m = moments + 3 * (4 * row + part);
            if (m[0] == 0)
                continue;
            const float both = count + m[0], apart = m[1] - mean;
            mean += apart * (m[0] / both);
            squares += m[2] + apart * apart * (count * m[0] / both);
            count = both;
        }
        const float scale = rsqrtf(squares / C + 1e-5f);
        for (int i = lane; i < C; i += 32)
            y[size_t(row) * C + i] = (x[size_t(row) * C + i] - mean) * scale * gamma[i] + beta[i];
    }
}
