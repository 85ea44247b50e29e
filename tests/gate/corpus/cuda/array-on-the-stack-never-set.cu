/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["R"]
block = [32]
args = ["x", "y", "int C", "int R - R"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sixteen partial sums a lane in an array on the stack, which nobody sets to zero.

extern "C" __global__ __launch_bounds__(32) void sums(const float *x, float *y, int C, int turn)
{
    volatile float parts[16]; // as they are
    const float *in = x + size_t(blockIdx.x) * C;
    int at = turn;
    for (int i = threadIdx.x; i < C; i += 32) {
        parts[at & 15] = parts[at & 15] + in[i];
        at += 1 + turn;
    }
    float sum = 0;
    for (int i = 0; i < 16; ++i)
        sum += parts[(i + turn) & 15];
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
