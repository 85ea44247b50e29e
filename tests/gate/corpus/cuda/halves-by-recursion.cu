/*klineage
surface = "cuda"

[[launch]]
kernel = "sums"
grid = ["R"]
block = [32]
args = ["x", "y", "int C"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Sums by halves: a function that calls itself, with an array in each frame that is written first.

__device__ __noinline__ float sumOf(const float *in, int count, int depth)
{
    volatile float parts[4];
    if (count <= 4 || depth == 7) {
        for (int i = 0; i < 4; ++i)
            parts[i] = 0;
        for (int i = 0; i < count; ++i)
            parts[i & 3] = parts[i & 3] + in[i];
        return (parts[0] + parts[1]) + (parts[2] + parts[3]);
    }
    const int half = count / 2;
    parts[depth & 1] = sumOf(in, half, depth + 1);
    parts[2 + (depth & 1)] = sumOf(in + half, count - half, depth + 1);
    return parts[depth & 1] + parts[2 + (depth & 1)];
}
extern "C" __global__ __launch_bounds__(32) void sums(const float *x, float *y, int C)
{
    const float *in = x + size_t(blockIdx.x) * C;
    const int each = (C + 31) / 32, begin = min(int(threadIdx.x) * each, C);
    float sum = sumOf(in + begin, min(each, C - begin), 0);
    for (int lane = 16; lane > 0; lane /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, lane);
    if (threadIdx.x == 0)
        y[blockIdx.x] = sum;
}
