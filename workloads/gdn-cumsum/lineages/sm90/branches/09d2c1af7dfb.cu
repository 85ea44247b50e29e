/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [512]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: 16 threads share one head of a chunk, four tokens each, and a warp has the same four
// tokens of 32 heads. A thread reads all of its tokens before it adds the first: memory is waited for once, not at each token. It sums
// its own tokens, leaves their total in shared memory, and adds the totals of the threads before it.

extern "C" __global__ void __launch_bounds__(512) cumsum(const float *__restrict__ g, float *__restrict__ gc, int T, int HV)
{
    __shared__ float totals[16][32];
    const int lane = threadIdx.x & 31, part = threadIdx.x >> 5;
    const int head = blockIdx.x * 32 + lane, first = blockIdx.y * 64 + part * 4;
    // None (or fewer than none) for a thread past the heads or the tokens: it still comes to the barrier, with zeros.
    const int valid = head < HV ? min(4, T - first) : 0;
    const size_t at = (size_t(blockIdx.z) * T + first) * HV + head;
    float values[4];
#pragma unroll
    for (int t = 0; t < 4; ++t)
        values[t] = t < valid ? g[at + size_t(t) * HV] : 0.0f;
#pragma unroll
    for (int t = 1; t < 4; ++t)
        values[t] += values[t - 1];
    totals[part][lane] = values[3];
    __syncthreads();
    // Four chains of additions, so that none is long.
    float before[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int p = 0; p < 15; ++p)
        before[p & 3] += p < part ? totals[p][lane] : 0.0f;
    const float sum = (before[0] + before[1]) + (before[2] + before[3]);
#pragma unroll
    for (int t = 0; t < 4; ++t)
        if (t < valid)
            gc[at + size_t(t) * HV] = sum + values[t];
}
