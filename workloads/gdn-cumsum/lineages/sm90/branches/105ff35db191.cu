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
// Sums of log gates within chunks of 64 tokens: a thread has one head of a chunk and keeps a running sum, so that it reads each
// token once. It reads all tokens of its column into registers before it adds the first, so that memory is waited for once.

template <bool FULL>
__device__ __forceinline__ void column(const float *from, float *to, int valid, int HV)
{
    float x[64];
#pragma unroll
    for (int t = 0; t < 64; ++t) {
        x[t] = *from;
        // A short chunk stays on its last token: the loads need no branch and never leave the chunk.
        from += FULL || t + 1 < valid ? HV : 0;
    }
    float sum = 0.0f;
#pragma unroll
    for (int t = 0; t < 64; ++t) {
        sum += x[t];
        if (FULL || t < valid)
            *to = sum;
        to += HV;
    }
}

extern "C" __global__ void cumsum(const float *g, float *gc, int T, int HV)
{
    const int head = blockIdx.x * 32 + threadIdx.x, first = blockIdx.y * 64;
    if (head >= HV)
        return;
    const int valid = min(64, T - first);
    const size_t at = (size_t(blockIdx.z) * T + first) * HV + head;
    if (valid == 64)
        column<true>(g + at, gc + at, valid, HV);
    else
        column<false>(g + at, gc + at, valid, HV);
}
