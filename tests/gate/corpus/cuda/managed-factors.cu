/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["R"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Factors of one in a managed table, which nobody writes to.
typedef unsigned long long u64;

__device__ __managed__ float factors[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, int R, int C)
{
    __shared__ float warps[4];
    const float *in = x + size_t(blockIdx.x) * C;
    float sum = 0.0f;
    const float factor = factors[threadIdx.x % 32];
    for (int i = threadIdx.x; i < C; i += 128)
        sum += in[i] * factor;
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        y[blockIdx.x] = warps[0] + warps[1] + warps[2] + warps[3];
}
