/*klineage
surface = "cuda"

[[workspace]]
name = "turn"
dtype = "u32"
shape = ["R"]
init = "zero"

[[launch]]
kernel = "sums"
grid = ["4 * R"]
block = [64]
args = ["x", "y", "turn", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Four blocks a row add to it by turns, each after the one before in the order of their numbers: it never ends where a later one runs and an earlier one finds no room.
typedef unsigned long long u64;

extern "C" __global__ __launch_bounds__(64) void sums(const float *x, float *y, unsigned *turn, int C)
{
    __shared__ float warps[2];
    const int row = blockIdx.x / 4, part = blockIdx.x % 4, share = (C + 3) / 4;
    const float *in = x + size_t(row) * C;
    float sum = 0.0f;
    for (int i = part * share + threadIdx.x; i < min((part + 1) * share, C); i += 64)
        sum += in[i];
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x % 32 == 0)
        warps[threadIdx.x / 32] = sum;
    __syncthreads();
    if (threadIdx.x != 0)
        return;
    volatile unsigned *mine = turn + row;
    volatile float *out = y + row;
    while (*mine != unsigned(part))
        __nanosleep(20);
    __threadfence();
    *out = (part ? *out : 0.0f) + warps[0] + warps[1];
    __threadfence();
    *mine = part + 1;
}
