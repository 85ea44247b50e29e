/*klineage
surface = "cuda"

[[launch]]
kernel = "kkt_solve"
grid = ["HV", "ceil_div(T, 64)", "B"]
block = [256]
shared = "64 * 65 * 4 + 2 * 64 * 65 * 4"
args = ["k", "g", "beta", "a", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
//
// The inverse triangular matrices of the gated delta rule: L[t][s] = beta[t] exp(G[t] - G[s]) k[t] . k[s] below the diagonal, with G the
// sums of the log gates within the chunk, and the inverse of I + L by forward substitution. A block has one chunk of 64 tokens of
// one head. It brings the chunk's keys to shared memory once, in whole lines; all threads share the entries of L, and 64 of
// them compute a column of the inverse each.
// Needs D == 128.

#include <cuda_bf16.h>

constexpr int D = 128, C = 64; // C tokens a chunk
constexpr int PITCH = 65;      // of rows in words: 32 rows lie in different banks

extern "C" __global__ void __launch_bounds__(256)
    kkt_solve(const __nv_bfloat16 *__restrict__ k, const float *__restrict__ g, const float *__restrict__ beta,
              __nv_bfloat16 *__restrict__ a, int T, int HQ, int HV)
{
    extern __shared__ unsigned char dynamicShared[];
    __shared__ float sums[C], betas[C];
    unsigned(*keys)[PITCH] = reinterpret_cast<unsigned(*)[PITCH]>(dynamicShared); // pairs of bf16
    float(*system)[PITCH] = reinterpret_cast<float(*)[PITCH]>(keys + C);
    float(*inverse)[PITCH] = system + C;

    const int head = blockIdx.x, chunk = blockIdx.y, thread = threadIdx.x;
    const int valid = min(C, T - chunk * C);
    const size_t token = size_t(blockIdx.z) * T + chunk * C;
    const __nv_bfloat16 *from = k + (token * HQ + head / (HV / HQ)) * D;

    for (int i = thread; i < C * D / 2; i += 256) {
        const int row = i / (D / 2), pair = i % (D / 2);
        keys[row][pair] = row < valid ? *reinterpret_cast<const unsigned *>(from + size_t(row) * HQ * D + 2 * pair) : 0u;
    }
    if (thread < C) {
        float sum = 0.0f;
        for (int s = 0; s <= thread; ++s)
            sum += s < valid ? g[(token + s) * HV + head] : 0.0f;
        sums[thread] = sum;
        betas[thread] = thread < valid ? beta[(token + thread) * HV + head] : 0.0f;
    }
    __syncthreads();

    for (int i = thread; i < C * C; i += 256) {
        const int t = i / C, s = i % C;
        if (s >= t)
            continue;
        float product = 0.0f;
        for (int pair = 0; pair < D / 2; ++pair) {
            const unsigned x = keys[t][pair], y = keys[s][pair];
            product += __uint_as_float(x << 16) * __uint_as_float(y << 16);
            product += __uint_as_float(x & 0xffff0000u) * __uint_as_float(y & 0xffff0000u);
        }
        system[t][s] = betas[t] * expf(sums[t] - sums[s]) * product;
    }
    __syncthreads();

    // Columns do not meet: each thread reads only what it wrote itself.
    if (thread < C) {
        for (int t = 0; t < valid; ++t) {
            float entry = t == thread ? 1.0f : 0.0f;
            for (int s = 0; s < t; ++s)
                entry -= system[t][s] * inverse[s][thread];
            inverse[t][thread] = entry;
            a[((token + t) * HV + head) * C + thread] = __float2bfloat16(entry);
        }
    }
}
