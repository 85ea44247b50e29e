/*klineage
surface = "cuda"

[[workspace]]
name = "times"
dtype = "i64"
shape = ["4 * ceil_div(R, 16)"]

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 16)"]
block = [128]
args = ["x", "y", "times", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// As one finds it while it is being tuned: each block notes in a workspace when it began and ended, on which multiprocessor, and nobody reads it.

__device__ __forceinline__ long long now()
{
    long long t;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(t) : : "memory");
    return t;
}

extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, long long *times, int R, int C)
{
    const long long begin = now(), cycles = clock64();
    const int row = blockIdx.x * 16 + threadIdx.x / 8, part = threadIdx.x % 8;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += in[i];
    for (int other = 1; other < 8; other *= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, other);
    if (part == 0 && row < R)
        y[row] = sum;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sm;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(sm));
        long long *to = times + 4 * blockIdx.x;
        to[0] = begin;
        to[1] = now();
        to[2] = clock64() - cycles;
        to[3] = sm;
    }
}
