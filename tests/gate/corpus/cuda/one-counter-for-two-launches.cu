/*klineage
surface = "cuda"

[[workspace]]
name = "tickets"
dtype = "u32"
shape = [1]
init = "zero"

[[launch]]
kernel = "upper"
grid = ["min(ceil_div(R, 2), sm_count)"]
block = [32]
args = ["x", "y", "tickets", "int R", "int C"]

[[launch]]
kernel = "lower"
grid = ["min(ceil_div(R, 2), sm_count)"]
block = [32]
args = ["x", "y", "tickets", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Two launches, each for half of the rows, draw from one counter, which is cleared before the first. The second one begins where the first ended: blocks of the first that drew in vain have moved it on.
__device__ void rowsFrom(const float *x, float *y, unsigned *tickets, int end, int C)
{
    while (true) {
        int row = 0;
        if (threadIdx.x == 0)
            row = int(atomicAdd(tickets, 1u));
        row = __shfl_sync(0xffffffffu, row, 0);
        if (row >= end)
            return;
        float sum = 0.0f;
        for (int i = threadIdx.x; i < C; i += 32)
            sum += x[size_t(row) * C + i];
        for (int other = 16; other > 0; other /= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        if (threadIdx.x == 0)
            y[row] = sum;
    }
}
extern "C" __global__ __launch_bounds__(32) void upper(const float *x, float *y, unsigned *tickets, int R, int C)
{
    rowsFrom(x, y, tickets, (R + 1) / 2, C);
}
extern "C" __global__ __launch_bounds__(32) void lower(const float *x, float *y, unsigned *tickets, int R, int C)
{
    rowsFrom(x, y, tickets, R, C);
}
