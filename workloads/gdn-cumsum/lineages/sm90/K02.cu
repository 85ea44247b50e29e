/*klineage
surface = "cuda"

[[launch]]
kernel = "cumsum"
grid = ["ceil_div(HV, 32)", "ceil_div(T, 64)", "B"]
block = [32]
args = ["g", "gc", "int T", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// Sums of log gates within chunks of 64 tokens: a thread has one head of a chunk and keeps a running sum. It reads all of its tokens
// before it adds the first: memory is waited for once, not at each token.

extern "C" __global__ void __launch_bounds__(32) cumsum(const float *__restrict__ g, float *__restrict__ gc, int T, int HV)
{
    const int head = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 64;
    if (head >= HV)
        return;
    const int valid = min(64, T - first);
    const size_t at = (size_t(blockIdx.z) * T + first) * HV + head;
    float values[64];
#pragma unroll
    for (int t = 0; t < 64; ++t)
        values[t] = t < valid ? g[at + size_t(t) * HV] : 0.0f;
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < 64; ++t) {
        sum += values[t];
        if (t < valid)
            gc[at + size_t(t) * HV] = sum;
    }
}
