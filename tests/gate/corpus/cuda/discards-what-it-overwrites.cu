/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Gives up the lines of its output before it writes them whole, so that what was there need not be kept.
typedef unsigned long long u64;

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    for (int n = 0; n < 16; ++n) {
        const int begin = blockIdx.x * 4096 + n * 256 + warp * 32;
        const bool whole = begin + 32 <= count && reinterpret_cast<u64>(y + begin) % 128 == 0;
        const float v = begin + lane < count ? silu(x[begin + lane]) : 0.0f;
        if (whole && lane == 0)
            asm volatile("discard.global.L2 [%0], 128;" : : "l"(y + begin) : "memory");
        __syncwarp();
        if (begin + lane < count)
            y[begin + lane] = v;
    }
}
