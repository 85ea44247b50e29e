/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(R * C, 4096)"]
block = [256]
args = ["x", "y", "int R * C", "int 4096"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// The blocks take pieces by turns, as long as a parameter says: the parent of what changes that.
typedef unsigned long long u64;

__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }

extern "C" __global__ __launch_bounds__(256) void activate(const float *x, float *y, int count, int piece)
{
    for (int begin = blockIdx.x * piece; begin < count; begin += gridDim.x * piece)
        for (int i = begin + threadIdx.x; i < min(begin + piece, count); i += 256)
            y[i] = silu(x[i]);
}
