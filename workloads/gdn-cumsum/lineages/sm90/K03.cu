/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [32, 16]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: 16 threads share a head of a chunk. Each has four tokens in a row, adds them up,
// and begins with the totals of those before it, which meet in shared memory.

constexpr int OWN = 4, PARTS = 64 / OWN; // tokens of a thread, threads of a column

extern "C" __global__ void __launch_bounds__(32 * PARTS)
    cumsum(const float *__restrict__ g, float *__restrict__ gc, int T, int HV)
{
    __shared__ float totals[PARTS][32];
    const int head = blockIdx.x * 32 + threadIdx.x, part = threadIdx.y, first = blockIdx.y * 64 + part * OWN;
    const int valid = head < HV ? min(OWN, T - first) : 0; // may be negative
    const size_t at = (size_t(blockIdx.z) * T + first) * HV + head;

    float sums[OWN], sum = 0.0f;
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        sums[t] = t < valid ? g[at + size_t(t) * HV] : 0.0f;
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        sums[t] = sum += sums[t];
    totals[part][threadIdx.x] = sum;
    __syncthreads();

    float before = 0.0f;
    for (int p = 0; p < part; ++p)
        before += totals[p][threadIdx.x];
#pragma unroll
    for (int t = 0; t < OWN; ++t)
        if (t < valid)
            gc[at + size_t(t) * HV] = before + sums[t];
}
