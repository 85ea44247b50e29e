/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["ceil_div(R, 16)"]
block = [128]
args = ["x", "y", "int R", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums in shared memory are put back to zero when a block has written them: for the next one, it is thought. Who does it for the first one nobody says.
extern "C" __global__ __launch_bounds__(128) void sums(const float *x, float *y, int R, int C)
{
    __shared__ float totals[16];
    const int own = int(threadIdx.x) / 8, row = blockIdx.x * 16 + own, part = threadIdx.x % 8;
    const float *in = x + size_t(min(row, R - 1)) * C;
    float sum = 0.0f;
    for (int i = part; i < C; i += 8)
        sum += in[i];
    atomicAdd(totals + own, sum);
    __syncthreads();
    if (part == 0 && row < R)
        y[row] = totals[own];
    __syncthreads();
    if (threadIdx.x < 16)
        totals[threadIdx.x] = 0.0f;
}
