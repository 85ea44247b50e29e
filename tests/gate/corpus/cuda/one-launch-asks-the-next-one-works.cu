/*klineage
surface = "cuda"

[[launch]]
kernel = "asks"
grid = ["ceil_div(R * C, 32 * 256)"]
block = [256]
args = ["x", "int R * C"]

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 1024)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A launch of its own asks for each line of the run's own input, and the next one works.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(256) void asks(const float *x, int count)
{
    const int i = (blockIdx.x * 256 + threadIdx.x) * 32;
    if (i < count)
        asm volatile("prefetch.global.L2 [%0];" : : "l"(x + i) : "memory");
}

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
#pragma unroll
    for (int n = 0; n < 4; ++n) {
        const int i = blockIdx.x * 1024 + n * 256 + threadIdx.x;
        if (i < count)
            y[i] = silu(x[i]);
    }
}
