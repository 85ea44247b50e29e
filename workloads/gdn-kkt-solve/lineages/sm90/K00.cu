/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [64]
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV", "int D"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule as they are defined: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the
// diagonal, with G the sums of the log gates within the chunk, and the inverse of I + L by forward substitution. A block has one
// chunk of 64 tokens of one head; a thread computes one row of L, then one column of the inverse.

#include <cuda_bf16.h>

constexpr int C = 64; // tokens a chunk

extern "C" __global__ void kkt_solve(const __nv_bfloat16 *k, const float *g, const float *beta, __nv_bfloat16 *a, int T,
                                     int HQ, int HV, int D)
{
    __shared__ float sums[C], system[C][C], inverse[C][C];
    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;
    const __nv_bfloat16 *keys = k + (token * HQ + head / (HV / HQ)) * D;

    float sum = 0.0f;
    if (thread < valid)
        for (int s = 0; s <= thread; ++s)
            sum += g[(token + s) * HV + head];
    sums[thread] = sum;
    __syncthreads();

    if (thread < valid) {
        for (int s = 0; s < thread; ++s) {
            float product = 0.0f;
            for (int i = 0; i < D; ++i)
                product += __bfloat162float(keys[size_t(thread) * HQ * D + i]) * __bfloat162float(keys[size_t(s) * HQ * D + i]);
            system[thread][s] = beta[(token + thread) * HV + head] * expf(sums[thread] - sums[s]) * product;
        }
    }
    __syncthreads();

    // Columns do not meet: each thread reads only what it wrote itself.
    for (int t = 0; t < valid; ++t) {
        float entry = t == thread ? 1.0f : 0.0f;
        for (int s = 0; s < t; ++s)
            entry -= system[t][s] * inverse[s][thread];
        inverse[t][thread] = entry;
        a[((token + t) * HV + head) * C + thread] = __float2bfloat16(entry);
    }
}
