/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = [1]
block = [1024]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One block of 32 warps does all rows, on one multiprocessor of all.

extern "C" __global__ __launch_bounds__(1024) void sums(const float *x, float *y, int R, int C)
{
    for (int row = threadIdx.x / 32; row < R; row += 32) {
        float sum = 0.0f;
        for (int i = threadIdx.x % 32; i < C; i += 32)
            sum += x[size_t(row) * C + i];
        for (int other = 16; other > 0; other /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (threadIdx.x % 32 == 0)
            y[row] = sum;
    }
}
