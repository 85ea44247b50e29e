/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The last block begins earlier where it would not be full, and makes again what the one before makes: both write the same.
typedef unsigned long long u64;

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    const int begin = max(0, min(int(blockIdx.x) * 4096, count - 4096));
#pragma unroll 4
    for (int n = 0; n < 16; ++n) {
        const int i = begin + n * 256 + threadIdx.x;
        if (i < count)
            y[i] = silu(x[i]);
    }
}
