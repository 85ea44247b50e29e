/*klineage
surface = "cuda"

[[tunable]]
name = "WIDE"
default = 4
values = [2, 4]

[[launch]]
kernel = "by_fours"
when = "C % 4 == 0"
grid = ["ceil_div(R * C, 1024 * WIDE)"]
block = [256]
args = ["x", "y", "int R * C", "int 0"]

[[launch]]
kernel = "by_fours"
when = "C % 4 == 0"
grid = ["ceil_div(R * C, 1024 * WIDE)"]
block = [256]
args = ["x", "y", "int R * C", "int 1"]

[[launch]]
kernel = "by_ones"
when = "C % 4 != 0"
grid = ["ceil_div(R * C, 256)"]
block = [256]
args = ["x", "y", "int R * C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Where columns are a multiple of four: even vectors by one launch and odd ones by the next. Otherwise one launch element by element.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(256) void by_fours(const float *x, float *y, int count, int odd)
{
    for (int v = 2 * int(blockIdx.x * 256 + threadIdx.x) + odd; v < count / 4; v += 2 * int(gridDim.x * 256)) {
        const float4 in = reinterpret_cast<const float4 *>(x)[v];
        reinterpret_cast<float4 *>(y)[v] = make_float4(silu(in.x), silu(in.y), silu(in.z), silu(in.w));
    }
}

extern "C" __global__ __launch_bounds__(256) void by_ones(const float *x, float *y, int count)
{
    const int i = blockIdx.x * 256 + threadIdx.x;
    if (i < count)
        y[i] = silu(x[i]);
}
