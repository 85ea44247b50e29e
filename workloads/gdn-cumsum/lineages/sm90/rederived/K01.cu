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
// Sums of log gates within chunks of 64 tokens: a thread has one head of a chunk, and goes through the chunk's tokens once with a
// running sum, which it writes at each of them.

extern "C" __global__ void cumsum(const float *g, float *gc, int T, int HV)
{
    const int head = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 64;
    if (head >= HV)
        return;
    const int valid = min(64, T - first);
    const size_t at = (size_t(blockIdx.z) * T + first) * HV + head;
    float sum = 0.0f;
    for (int t = 0; t < valid; ++t) {
        sum += g[at + size_t(t) * HV];
        gc[at + size_t(t) * HV] = sum;
    }
}
