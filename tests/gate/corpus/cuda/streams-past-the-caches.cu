/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["min(ceil_div(R * C, 256), 8 * sm_count)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Loads that no cache is to keep, and stores that are written at once; blocks go from the end of the tensor to its beginning.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count)
{
    for (int i = count - 1 - int(blockIdx.x * 256 + threadIdx.x); i >= 0; i -= int(gridDim.x * 256))
        __stwt(y + i, silu(__ldlu(x + i)));
}
