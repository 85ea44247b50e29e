/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["R * C == 1048576 ? sm_count : ceil_div(R * C, 4096)"]
block = [512]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// One block a multiprocessor: the parent of another.

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(512) void activate(const float *x, float *y, int count)
{
    for (int i = blockIdx.x * 512 + threadIdx.x; i < count; i += gridDim.x * 512)
        y[i] = silu(x[i]);
}
