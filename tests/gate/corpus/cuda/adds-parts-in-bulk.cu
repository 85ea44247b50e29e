/*klineage
surface = "cuda"

[[workspace]]
name = "totals"
dtype = "f32"
shape = ["round_up(R, 16)"]
init = "zero"

[[launch]]
kernel = "parts"
grid = ["4 * ceil_div(R, 16)"]
block = [128]
args = ["x", "totals", "int R", "int C"]

[[launch]]
kernel = "take"
grid = ["ceil_div(R, 256)"]
block = [256]
args = ["totals", "y", "int R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four blocks add up a quarter of sixteen rows each, and add the sixteen sums to memory by one bulk reduction; the order of these is not fixed. A second launch brings them.
typedef unsigned long long u64;

extern "C" __global__ __launch_bounds__(128) void parts(const float *x, float *totals, int R, int C)
{
    __shared__ __align__(16) float sums[16];
    const int group = blockIdx.x / 4, quarter = blockIdx.x % 4, share = (C + 3) / 4;
    const int row = group * 16 + int(threadIdx.x) / 8, part = threadIdx.x % 8;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float sum = 0.0f;
    for (int i = quarter * share + part; i < min((quarter + 1) * share, C); i += 8)
        sum += in[i];
    for (int other = 1; other < 8; other *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (part == 0)
        sums[threadIdx.x / 8] = row < R ? sum : 0.0f;
    asm volatile("fence.proxy.async.shared::cta;" : : : "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 64;\ncp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;"
                     : : "l"(totals + 16 * group), "r"(unsigned(__cvta_generic_to_shared(sums))) : "memory");
    }
}
extern "C" __global__ __launch_bounds__(256) void take(const float *totals, float *y, int R)
{
    const int row = blockIdx.x * 256 + threadIdx.x;
    if (row < R)
        y[row] = totals[row];
}
