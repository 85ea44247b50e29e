/*klineage
surface = "cuda"

[[launch]]
kernel = "activate"
grid = ["ceil_div(C, 96)", "min(R, 7)", "ceil_div(R, 7)"]
block = [32, 3]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Blocks of three warps, seven rows beside each other and the others behind: some blocks have nothing.
__device__ __forceinline__ float silu(float v) { return v / (1.0f + expf(-v)); }
extern "C" __global__ __launch_bounds__(96) void activate(const float *x, float *y, int R, int C)
{
    const int column = blockIdx.x * 96 + threadIdx.y * 32 + threadIdx.x, row = blockIdx.z * 7 + blockIdx.y;
    if (row < R && column < C)
        y[size_t(row) * C + column] = silu(x[size_t(row) * C + column]);
}
