/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "long R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The honest parent of those for silu.
typedef unsigned long long u64;

// 4096 elements a block.
__device__ void activateBlock(const float *x, float *y, int count, int block)
{
    for (int i = block * 4096 + threadIdx.x, n = 0; n < 16; i += 256, ++n)
        if (i < count)
            y[i] = x[i] / (1.0f + expf(-x[i]));
}
extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, long long count)
{
    activateBlock(x, y, int(count), blockIdx.x);
}
