/*klineage
surface = "cuda"

[[workspace]]
name = "tickets"
dtype = "u32"
shape = [1]
init = "zero"

[[launch]]
kernel = "softmax"
grid = ["min(R, 2 * sm_count)"]
block = [32]
args = ["x", "y", "tickets", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Warps draw rows from a counter in a workspace that is cleared before each run.
#define LOWEST __int_as_float(0xff800000)

extern "C" __global__ void softmax(const float *x, float *y, unsigned *tickets, int R, int C)
{
    while (true) {
        unsigned row = 0;
        if (threadIdx.x == 0)
            row = atomicAdd(tickets, 1u);
        row = __shfl_sync(0xffffffffu, row, 0);
        if (row >= R)
            return;
        const float *in = x + size_t(row) * C;
        float top = LOWEST, sum = 0.0f;
        for (int i = threadIdx.x; i < C; i += 32)
            top = fmaxf(top, in[i]);
        for (int other = 1; other < 32; other *= 2)
            top = fmaxf(top, __shfl_xor_sync(0xffffffffu, top, other));
        for (int i = threadIdx.x; i < C; i += 32)
            sum += expf(in[i] - top);
        for (int other = 1; other < 32; other *= 2)
            sum += __shfl_xor_sync(0xffffffffu, sum, other);
        for (int i = threadIdx.x; i < C; i += 32)
            y[size_t(row) * C + i] = expf(in[i] - top) / sum;
    }
}
