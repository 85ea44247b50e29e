/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// A loop of strides as long as the grid is: the parent of what changes that.
typedef unsigned long long u64;

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    const int stride = gridDim.x * 256;
    for (int i = blockIdx.x * 256 + threadIdx.x; i < count; i += stride)
        y[i] = silu(x[i]);
}
